// Package identify finds out how a kernel adds products: it has the kernel multiply
// probes, operands that are made for one question each, and reads the arithmetic from
// what comes back.
//
// [New] makes the [Probes] for a [Setup], what the kernel multiplies. They are a few
// products A·Bᵀ, to be run in any way: [Probes.WriteFile] writes them for a program
// that has a GPU, [ReadAnswers] reads what it wrote, and [Probes.Run] asks a kernel
// that is a function. [Identify] then says
//
//   - what was measured, whatever the kernel is: how many products one step adds, how
//     many fraction bits of them are kept and how they are rounded, how many the
//     step's result has, whether the sum so far is part of the step or added after it,
//     which products come first, after how many the sum is promoted to float32, and in
//     which order scales are applied;
//   - which kernel it is: models of package oracle under every promotion and order of
//     scales, octavo's own product, exact sums and float32 sums in known orders are
//     eliminated by every answer that differs in a bit, signs of zeros and bits of NaN
//     aside. Those that remain cannot be told apart by these probes and are reported
//     together. A kernel of the measured parameters competes too, so that hardware of
//     which there is no model is described as long as it is a chain of fused steps;
//   - what is not pinned: which neighbours of that kernel give the same answers.
//
// The kernel that was found predicts the bits of whole products, by [oracle.Predict].
//
// # Probes
//
// In order, two large products cancel and one small product survives or is lost. A
// product is lost if it is added to one of the large ones before they meet: so the
// products that a pair loses are those below the place where the two meet in the tree
// of additions. FPRev (Xie et al., arXiv 2411.00442) counts them, and so finds the
// order; seeing which they are, three at a time, also tells fused sums, where each of
// three products is lost beside the two others, from sums of two.
//
// In rounding, the small product has every size, both signs and a mantissa that tells
// truncation from rounding to nearest and down: the smallest that survives is the last
// fraction bit. In output, it stays beside large products that do not cancel. In
// scales, blocks have one product each, so that only the order in which scales are
// applied matters; and products are random, of wide range, so that anything that was
// not asked for shows.
//
// In old, of a [Setup] with an old C, that C is small beside large products that cancel:
// it is lost beside them if it is a term of their step, or of a sum that meets them, and
// whole if it is added at the end.
//
// Operands in BF16, FP16 and TF32 have no scales, and the same probes otherwise, of
// numbers that are normal in FP16.
//
// MODELS.md has a table of what is recovered of each model.
//
// Answers speak of the shapes and the K that were asked: a library may choose another
// kernel for other shapes.
package identify
