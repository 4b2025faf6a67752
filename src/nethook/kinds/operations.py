"""What kinds of operations there are, by the names that addresses have (`hooks.ops.names`)."""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# They hand on the elements they are given: rearranged, selected, repeated, cast.
PASS = _names("""
    alias bfloat16 broadcast_to chunk clone contiguous cpu cuda detach double expand expand_as
    flatten flip float gather getitem half identity index_select movedim moveaxis narrow permute
    pixel_shuffle pixel_unshuffle positive repeat repeat_interleave reshape reshape_as roll select
    slice split split_with_sizes squeeze swapaxes swapdims t tensor_split tile to transpose
    type type_as unbind unflatten unsqueeze view view_as
    dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout feature_dropout
""")
# Of these, those after which element i is still element i.
ALIGNED = _names("""
    alias bfloat16 clone contiguous cpu cuda detach double float half identity positive to type
    type_as dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout
    feature_dropout
""")
# Linear in what passes through: no bend comes from them.
LINEAR = _names("""
    linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d matmul mm
    bmm addmm baddbmm einsum add sub rsub neg mean sum cat stack getitem view reshape
    flatten unflatten squeeze unsqueeze transpose permute swapaxes movedim expand repeat
    contiguous clone to float half double bfloat16 type chunk split unbind pad avg_pool1d
    avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d
    interpolate upsample dropout dropout1d dropout2d dropout3d identity cumsum roll flip
    narrow select t detach unfold fold pixel_shuffle
""")
# Linear where only one of their arguments is a tensor that was computed.
LINEAR_BY_A_CONSTANT = _names("mul div truediv")
# Linear in one argument while the other stays: a product of two computed tensors is not.
LINEAR_IN_ONE = _names("matmul mm bmm einsum baddbmm")
COMPARISONS = _names("ge gt le lt")
# Functions of each element: composed and evaluated again, they are one activation.
ELEMENTWISE = COMPARISONS | _names("""
    abs add atan celu clamp clamp_max clamp_min clip cos cosh div elu erf exp exp2 expm1 gelu
    hardshrink hardsigmoid hardswish hardtanh leaky_relu log log1p logsigmoid maximum minimum
    mish mul neg nan_to_num pow rdiv reciprocal relu relu6 rpow rrelu rsqrt rsub rtruediv selu
    sigmoid sign silu sin sinh softplus softshrink softsign sqrt square sub tan tanh tanhshrink
    threshold true_divide truediv where
""")
NORMS = _names("""
    batch_norm group_norm instance_norm layer_norm native_layer_norm rms_norm normalize
""")
REDUCTIONS = _names("mean sum var std var_mean norm vector_norm linalg_vector_norm")
CONVOLUTIONS = _names("conv1d conv2d conv3d")
TRANSPOSED = _names("conv_transpose1d conv_transpose2d conv_transpose3d")
PRODUCTS = _names("linear addmm matmul rmatmul mm bmm baddbmm einsum")
RECURRENT = _names("""
    lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell
""")
LOOKUPS = _names("embedding embedding_bag")
ATTENTION = "multi_head_attention_forward"
FUSED_ATTENTION = "scaled_dot_product_attention"
WEIGHTED = CONVOLUTIONS | TRANSPOSED | PRODUCTS | RECURRENT | LOOKUPS | {"bilinear", ATTENTION}
# Those that make one linear layer of a weight.
LINEAR_LAYERS = _names("""
    linear conv1d conv2d conv3d conv_transpose2d matmul addmm bilinear
""")
# They draw random numbers, whatever the mode of the model.
RANDOM = _names("""
    bernoulli normal rand rand_like randn randn_like randint rsample multinomial gumbel_softmax
    uniform randperm
""")
# Means over places: they shrink a signal by what its places differ.
POOLS = _names("""
    avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d
    interpolate upsample
""")
