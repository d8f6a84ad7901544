// Package agree judges a linear layer as an engine ran it: whether its output is what the
// engine claims to compute of the input that it had, and which recipe explains it if not.
//
// Two engines that run one model, such as those of training and of rollouts, differ in what
// their layers are given as soon as one layer differs. A [Layer] therefore is judged alone:
// [Check] takes the input that was recorded, quantizes it and the weight of the checkpoint as
// the claimed [Recipe] says, and computes elements of the product to within 2^-50 of the sum
// of their products' magnitudes. A claim's bound is that of sums in float32 in any order, or
// of a model of a tensor core, and of the rounding to the output's type. Blocks of several
// tokens begin with each pass of the engine.
//
// What is looked at are two tokens with all columns, four columns with all tokens, and some
// tokens and columns of which all pairs are; those where something was found first. The
// layer is right if all of that is within its bound, wrong if something is outside. If it is
// wrong, the rows of a table of what engines do in place of what was claimed compete: a row
// explains the layer if it explains all elements of the pairs. Those that explain it are all
// told, but for those whose errors are so much larger than others' that these are likelier.
//
// Nothing is said of what is not looked at, and of what is no linear layer.
package agree
