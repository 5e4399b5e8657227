"""Ratings in the manner of the recommender chapter: tables by name, two towers, their cosine."""

import tempfile

import numpy as np
import paddle
import paddle.dataset.movielens as movielens
import paddle.fluid as fluid
import paddle.fluid.layers as layers
import paddle.fluid.nets as nets

FEED_ORDER = ["user_id", "gender_id", "age_id", "job_id", "movie_id", "category_id", "movie_title", "score"]


def one_id(name, count, table):
    """The embedding of a single id, through one dense layer."""
    ids = layers.data(name=name, shape=[1], dtype="int64")
    embedding = layers.embedding(input=ids, size=[count, 16], dtype="float32", param_attr=table, is_sparse=True)
    return layers.fc(input=embedding, size=16)


def user_tower():
    features = [one_id("user_id", movielens.max_user_id() + 1, "user_table"), one_id("gender_id", 2, "gender_table"),
                one_id("age_id", len(movielens.age_table), "age_table"),
                one_id("job_id", movielens.max_job_id() + 1, "job_table")]
    return layers.fc(input=layers.concat(input=features, axis=1), size=32, act="tanh")


def movie_tower():
    movie = one_id("movie_id", movielens.max_movie_id() + 1, "movie_table")
    category_id = layers.data(name="category_id", shape=[1], dtype="int64", lod_level=1)
    categories = layers.embedding(input=category_id, size=[len(movielens.movie_categories()), 16], is_sparse=True)
    title_id = layers.data(name="movie_title", shape=[1], dtype="int64", lod_level=1)
    title = layers.embedding(input=title_id, size=[len(movielens.get_movie_title_dict()), 16], is_sparse=True)
    title_conv = nets.sequence_conv_pool(input=title, num_filters=16, filter_size=3, act="tanh", pool_type="sum")
    features = [movie, layers.sequence_pool(input=categories, pool_type="sum"), title_conv]
    return layers.fc(input=layers.concat(input=features, axis=1), size=32, act="tanh")


def main():
    fluid.default_startup_program().random_seed = 9
    scale_infer = layers.scale(x=layers.cos_sim(X=user_tower(), Y=movie_tower()), scale=5.0)
    label = layers.data(name="score", shape=[1], dtype="float32")
    avg_cost = layers.mean(layers.square_error_cost(input=scale_infer, label=label))
    fluid.optimizer.SGD(learning_rate=0.2).minimize(avg_cost)

    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    block = fluid.default_main_program().global_block()
    feeder = fluid.DataFeeder([block.var(name) for name in FEED_ORDER], place)
    reader = paddle.batch(paddle.reader.shuffle(movielens.train(), buf_size=8192), batch_size=64)
    outs = []
    for batch_id, data in enumerate(reader()):
        outs.append(exe.run(fluid.default_main_program(), feed=feeder.feed(data), fetch_list=[avg_cost])[0])
        if batch_id == 50:
            break
    print("first=%f last=%f" % (outs[0], np.mean(outs[-10:])))

    with tempfile.TemporaryDirectory() as folder:
        fluid.io.save_inference_model(folder, FEED_ORDER[:-1], [scale_infer], exe)
        with fluid.scope_guard(fluid.core.Scope()):
            infer(exe, folder, place)


def infer(exe, folder, place):
    program, names, targets = fluid.io.load_inference_model(folder, exe)
    assert names == FEED_ORDER[:-1], names
    values = [[1], [1], [0], [7], [78], [1, 2, 5], [17, 4, 14, 5, 2, 1]]
    feed = {name: fluid.create_lod_tensor([np.array(ids, dtype="int64")], [[len(ids)]], place)
            for name, ids in zip(names, values)}
    results = exe.run(program, feed=feed, fetch_list=targets, return_numpy=False)
    print("score=%f" % np.array(results[0])[0, 0])


if __name__ == "__main__":
    main()
