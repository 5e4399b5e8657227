"""Film ratings by number."""

from fleet_mpi.data.sets import movielens
from fleet_mpi.data.sets_by_number.samples import Samples, files_of, mode_of


class Movielens(Samples):
    """A sample is (user, gender, age, job, film, categories, title words, rating), each an array of one dimension."""

    def __init__(self, data_file=None, mode="train", test_ratio=0.1, rand_seed=0, download=True):
        self.mode, self.data_file = mode_of(self, mode, ("train", "test")), data_file
        self.test_ratio, self.rand_seed = test_ratio, rand_seed
        with files_of(self, download, {movielens.URL: data_file}):
            self.movie_info, self.user_info = movielens.movie_info(), movielens.user_info()
            self.movie_title_dict, self.categories_dict = movielens.get_movie_title_dict(), movielens.movie_categories()
            read = movielens.train if self.mode == "train" else movielens.test
            self.data = [[field if isinstance(field, list) else [field] for field in sample]
                         for sample in read(rand_seed, test_ratio)()]
