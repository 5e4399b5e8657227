"""Attention and the transformer as layer classes of ``paddle.nn``, inside a static program."""

import collections

from fleet_mpi.errors import UsageError
from fleet_mpi.program.layers import activation, manipulation, math, nn
from fleet_mpi.program.layers.classes import Dropout, LayerNorm, Linear
from fleet_mpi.program.layers.functional_dropout import dropout
from fleet_mpi.program.layers.layer import Layer
from fleet_mpi.program.layers.layer_containers import LayerList
from fleet_mpi.program.layers.positions import triu
from fleet_mpi.program.layers.tensor import fill_constant, fill_constant_batch_size_like


class MultiHeadAttention(Layer):
    """Values averaged by how well their keys answer each query, ``num_heads`` times side by side.

    A mask of bools or whole numbers leaves out what is False or 0; one of floats is added to the scores.
    """

    Cache = collections.namedtuple("Cache", ["k", "v"])
    StaticCache = collections.namedtuple("StaticCache", ["k", "v"])

    def __init__(self, embed_dim, num_heads, dropout=0.0, kdim=None, vdim=None, need_weights=False, weight_attr=None,
                 bias_attr=None):
        super().__init__()
        if embed_dim % num_heads:
            raise UsageError(f"MultiHeadAttention: expected embed_dim divisible by num_heads, got {embed_dim} and "
                             f"{num_heads}")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.dropout, self.need_weights = dropout, need_weights
        self.q_proj = Linear(embed_dim, embed_dim, weight_attr, bias_attr)
        self.k_proj = Linear(kdim or embed_dim, embed_dim, weight_attr, bias_attr)
        self.v_proj = Linear(vdim or embed_dim, embed_dim, weight_attr, bias_attr)
        self.out_proj = Linear(embed_dim, embed_dim, weight_attr, bias_attr)

    def _heads(self, x):
        """[N, length, width] as [N, heads, length, width of a head]."""
        return manipulation.transpose(manipulation.reshape(x, [0, 0, self.num_heads, self.head_dim]), [0, 2, 1, 3])

    def compute_kv(self, key, value):
        """Keys and values by head."""
        return self._heads(self.k_proj(key)), self._heads(self.v_proj(value))

    def gen_cache(self, key, value=None, type=Cache):
        """Keys and values to go on with: of an encoder's output (StaticCache), given ones, or none yet."""
        if type is MultiHeadAttention.StaticCache:
            return type(*self.compute_kv(key, key if value is None else value))
        if value is not None:
            return type(key, value)
        empty = [fill_constant_batch_size_like(key, [-1, self.num_heads, 0, self.head_dim], key.dtype, 0.0)
                 for _ in range(2)]
        return type(*empty)

    def _keys_and_values(self, key, value, cache):
        """(keys, values, the cache to return)."""
        if isinstance(cache, self.StaticCache):
            return cache.k, cache.v, cache
        k, v = self.compute_kv(key, value)
        if isinstance(cache, self.Cache):
            k, v = manipulation.concat([cache.k, k], 2), manipulation.concat([cache.v, v], 2)
            cache = self.Cache(k, v)
        return k, v, cache

    def forward(self, query, key=None, value=None, attn_mask=None, cache=None):
        """The output, then the weights if they are needed, then the cache if one was given."""
        key = query if key is None else key
        k, v, cache = self._keys_and_values(key, key if value is None else value, cache)
        scores = math.matmul(self._heads(self.q_proj(query)), k, transpose_y=True, alpha=self.head_dim ** -0.5)
        weights = nn.softmax(with_mask(scores, attn_mask))
        if self.dropout:
            weights = dropout(weights, self.dropout, training=self.training)
        mixed = manipulation.transpose(math.matmul(weights, v), [0, 2, 1, 3])
        out = self.out_proj(manipulation.reshape(mixed, [0, 0, self.embed_dim]))
        found = [out, *([weights] if self.need_weights else []), *([cache] if cache is not None else [])]
        return out if len(found) == 1 else tuple(found)


def with_mask(scores, mask):
    """Scores plus the mask; what a mask of bools or whole numbers leaves out gets -1e9."""
    if mask is None:
        return scores
    if not str(mask.dtype.value).startswith("float"):
        mask = math.scale(math.cast(mask, scores.dtype), 1e9, -1.0, bias_after_scale=False)
    return math.elementwise_add(scores, mask)


class _Block(Layer):
    """What encoder and decoder layers share: the settings, the feed-forward part, norm and dropout around a part."""

    def __init__(self, d_model, nhead, dim_feedforward, dropout, activation_name, attn_dropout, act_dropout,
                 normalize_before, weight_attr, bias_attr):
        super().__init__()
        self._config = dict(d_model=d_model, nhead=nhead, dim_feedforward=dim_feedforward, dropout=dropout,
                            activation=activation_name, attn_dropout=attn_dropout, act_dropout=act_dropout,
                            normalize_before=normalize_before, weight_attr=weight_attr, bias_attr=bias_attr)
        self.normalize_before = normalize_before
        self._activation, self._dropout = activation_name, dropout
        self._attention_dropout = dropout if attn_dropout is None else attn_dropout
        self._inner_dropout = dropout if act_dropout is None else act_dropout

    def _make_feed_forward(self, attr, bias):
        """Two dense layers, the first wider."""
        width, inner = self._config["d_model"], self._config["dim_feedforward"]
        self.linear1 = Linear(width, inner, attr, bias)
        self.dropout = Dropout(self._inner_dropout)
        self.linear2 = Linear(inner, width, attr, bias)

    def _feed_forward(self, x):
        return self.linear2(self.dropout(activation.apply(self._activation, self.linear1(x))))

    def _around(self, x, norm, dropout, part):
        """x plus the part of it, normalised before or after; the part's other results follow."""
        found = part(norm(x) if self.normalize_before else x)
        made, rest = (found[0], found[1:]) if isinstance(found, tuple) else (found, ())
        made = math.elementwise_add(x, dropout(made))
        return made if self.normalize_before else norm(made), rest


def attr_of(attrs, index):
    """The attribute of one part, of a list for all parts or of one for each."""
    return attrs[min(index, len(attrs) - 1)] if isinstance(attrs, (list, tuple)) else attrs


class TransformerEncoderLayer(_Block):
    """Self-attention, then a feed-forward part, each with a shortcut and layer norm."""

    def __init__(self, d_model, nhead, dim_feedforward, dropout=0.1, activation="relu", attn_dropout=None,
                 act_dropout=None, normalize_before=False, weight_attr=None, bias_attr=None):
        super().__init__(d_model, nhead, dim_feedforward, dropout, activation, attn_dropout, act_dropout,
                         normalize_before, weight_attr, bias_attr)
        self.self_attn = MultiHeadAttention(d_model, nhead, self._attention_dropout,
                                            weight_attr=attr_of(weight_attr, 0),
                                            bias_attr=attr_of(bias_attr, 0))
        self._make_feed_forward(attr_of(weight_attr, 1), attr_of(bias_attr, 1))
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)

    def forward(self, src, src_mask=None, cache=None):
        """As many steps as came in; with a cache, the longer cache too."""
        src, rest = self._around(src, self.norm1, self.dropout1,
                                 lambda x: self.self_attn(x, x, x, src_mask, cache))
        src, _ = self._around(src, self.norm2, self.dropout2, self._feed_forward)
        return src if cache is None else (src, rest[-1])

    def gen_cache(self, src):
        """An empty cache."""
        return self.self_attn.gen_cache(src, type=MultiHeadAttention.Cache)


class _Stack(Layer):
    """Equal layers on top of each other: the one given, and new ones made like it."""

    def __init__(self, layer, num_layers, norm):
        super().__init__()
        self.layers = LayerList([layer] + [type(layer)(**layer._config) for _ in range(num_layers - 1)])
        self.num_layers, self.norm = num_layers, norm

    def _through(self, x, caches, call):
        new = []
        for i, layer in enumerate(self.layers):
            x = call(layer, x, None if caches is None else caches[i])
            if caches is not None:
                x, cache = x
                new.append(cache)
        x = x if self.norm is None else self.norm(x)
        return x if caches is None else (x, new)


class TransformerEncoder(_Stack):
    """``num_layers`` encoder layers."""

    def __init__(self, encoder_layer, num_layers, norm=None):
        super().__init__(encoder_layer, num_layers, norm)

    def forward(self, src, src_mask=None, cache=None):
        """The last layer's output; with a list of caches, the longer ones too."""
        return self._through(src, cache, lambda layer, x, one: layer(x, src_mask, one))

    def gen_cache(self, src):
        """An empty cache for each layer."""
        return [layer.gen_cache(src) for layer in self.layers]


class TransformerDecoderLayer(_Block):
    """Self-attention, attention to the encoder's output, then a feed-forward part."""

    def __init__(self, d_model, nhead, dim_feedforward, dropout=0.1, activation="relu", attn_dropout=None,
                 act_dropout=None, normalize_before=False, weight_attr=None, bias_attr=None):
        super().__init__(d_model, nhead, dim_feedforward, dropout, activation, attn_dropout, act_dropout,
                         normalize_before, weight_attr, bias_attr)
        self.self_attn, self.cross_attn = (
            MultiHeadAttention(d_model, nhead, self._attention_dropout, weight_attr=attr_of(weight_attr, i),
                               bias_attr=attr_of(bias_attr, i)) for i in (0, 1))
        self._make_feed_forward(attr_of(weight_attr, 2), attr_of(bias_attr, 2))
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))
        self.dropout1, self.dropout2, self.dropout3 = (Dropout(dropout) for _ in range(3))

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, cache=None):
        """As many steps as came in; with a pair of caches, the longer pair too."""
        own, given = (None, None) if cache is None else cache
        tgt, rest = self._around(tgt, self.norm1, self.dropout1, lambda x: self.self_attn(x, x, x, tgt_mask, own))
        tgt, _ = self._around(tgt, self.norm2, self.dropout2,
                              lambda x: self.cross_attn(x, memory, memory, memory_mask, given))
        tgt, _ = self._around(tgt, self.norm3, self.dropout3, self._feed_forward)
        return tgt if cache is None else (tgt, (rest[-1], given))

    def gen_cache(self, memory):
        """An empty cache, and the keys and values of the encoder's output."""
        return (self.self_attn.gen_cache(memory, type=MultiHeadAttention.Cache),
                self.cross_attn.gen_cache(memory, memory, type=MultiHeadAttention.StaticCache))


class TransformerDecoder(_Stack):
    """``num_layers`` decoder layers."""

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__(decoder_layer, num_layers, norm)

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, cache=None):
        """The last layer's output; with a list of caches, the longer ones too."""
        return self._through(tgt, cache, lambda layer, x, one: layer(x, memory, tgt_mask, memory_mask, one))

    def gen_cache(self, memory, do_zip=False):
        """The caches of each layer; zipped, all of one kind together."""
        found = [layer.gen_cache(memory) for layer in self.layers]
        return list(zip(*found)) if do_zip else found


class Transformer(Layer):
    """Encoder and decoder."""

    def __init__(self, d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048,
                 dropout=0.1, activation="relu", attn_dropout=None, act_dropout=None, normalize_before=False,
                 weight_attr=None, bias_attr=None, custom_encoder=None, custom_decoder=None):
        super().__init__()
        settings = (d_model, nhead, dim_feedforward, dropout, activation, attn_dropout, act_dropout, normalize_before)
        attrs = weight_attr, bias_attr
        norms = [LayerNorm(d_model) if normalize_before else None for _ in range(2)]
        self.encoder = custom_encoder or TransformerEncoder(TransformerEncoderLayer(*settings, *attrs),
                                                            num_encoder_layers, norms[0])
        self.decoder = custom_decoder or TransformerDecoder(TransformerDecoderLayer(*settings, *attrs),
                                                            num_decoder_layers, norms[1])
        self.d_model, self.nhead = d_model, nhead

    def forward(self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None):
        """The decoder's output."""
        return self.decoder(tgt, self.encoder(src, src_mask), tgt_mask, memory_mask)

    @staticmethod
    def generate_square_subsequent_mask(length):
        """0 where a step may look (itself and before), minus infinity where it may not."""
        return triu(fill_constant([length, length], "float32", float("-inf")), 1)
