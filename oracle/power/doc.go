// Package power looks at the errors of a whole result together. It finds faults of a
// kernel that are too small for a bound of single elements, and says which faults it
// would not have seen.
//
// A worst-case bound, as [oracle.Bound] is, allows for all roundings of a sum going one
// way, and grows as K times the sum of magnitudes. The errors of a correct kernel go both
// ways, and grow as the square root of K times the length of the sum. At K = 16,384 four
// powers of ten lie between: a kernel that drops the last k, flushes subnormals, or adds
// in 14 bits, keeps every element within the bound. But its errors have something in
// common, a sign, a row, a product, and that is what is tested here:
//
//	result, err := power.Measure(ctx, c, nil, a, b, power.Options{})
//	...
//	for _, t := range result.Tests {
//		fmt.Println(t.Name+":", t.String())
//	}
//
// Package judge and octavo verify do so for every result that is within its bound.
//
// # How to read an alarm
//
// An alarm says that a correct kernel that adds in float32 comes to such errors in less
// than one result in a million (or [Options].Rate), if the hypotheses below hold. It is a
// suspicion with odds; only an element outside of its worst-case bound is a proof.
//
// First see whether the claim is right. Tensor cores do not add in float32 (those of
// Hopper and Ada keep 14 bits), and the alarm that their results raise is true: demand
// the bits of their model, by [oracle.Predict]. A kernel that multiplies codes by scales
// before it adds is Dequantized. Then see which test raised it, and where:
//
//	elements     one element is farther off than rounding takes it
//	variance     errors are too large on the whole: sums of fewer bits, or rounded in between
//	wrong sides  too many elements of a 16-bit C are not the nearest number: rounded twice,
//	             or the wrong way
//	all of C     all elements are too high, too low, too small or too large: truncation, a scale
//	parts of C   so are those of a row, a column or a tile: an edge, or one block's part of C
//	products     errors have the signs of product k: it was lost, or multiplied by another
//	codes        errors of a row of C have the signs of what one code of A is multiplied by,
//	             or those of a column of one of B: that code was another
//	subnormals   errors are as if subnormal codes were zero, or larger
//	size         errors are larger than those of the claimed model's sums
//
// One fault may raise several. Score and limit are in standard deviations, about; a void
// test says nothing: correct kernels fail it with these operands, which happens where data
// have few distinct values. Where there is no alarm, Sights say how large a fault would
// have had to be. Below are the derivation, and how it fared.
//
// # The hypotheses
//
// Sums of float32 add local errors and nothing else: fl(x+y) = (x+y)(1+δ), so that a
// sum in any order, by any tree, is off by exactly Σ δ_v·T_v, T_v being the number that
// is rounded at v. The first hypothesis is that of random rounding:
//
//	(R) E(δ_v | all that was rounded before) = 0 and |δ_v| <= u = 2^-24.
//
// It is a theorem for stochastic rounding and a model for rounding to nearest, which is
// no good for data of few distinct values (Higham and Mary, "A New Approach to
// Probabilistic Rounding Error Analysis", SIAM Journal on Scientific Computing 41(5),
// 2019; Connolly, Higham and Mary, "Stochastic Rounding and Its Probabilistic Backward
// Error Analysis", the same 43(1), 2021). The second is used where the size of errors,
// which depends on the order of additions, is taken from the result itself:
//
//	(S) given their magnitudes, the signs of the errors of elements are fair coins, one
//	    for each class of elements whose exact results are equal up to the sign, thrown
//	    independently.
//
// So equal rows count once, and data of few distinct values, whose sums are few, throw
// few coins. The third is for counts and sums of squares:
//
//	(I) the errors of elements of different classes are independent.
//
// # Elements
//
// Let P be the larger one of the sum of the positive products and of the negative ones'
// magnitudes, (Σ|p| + |Σp|)/2. No partial sum of exact products in any order is larger,
// and no computed one larger than P·(1 + 2γ_n). Under R the errors of n-1 additions are a
// martingale whose differences are at most u·P·(1 + 2γ_n), and by the inequality of
// Azuma and Hoeffding (Journal of the American Statistical Association 58, 1963)
//
//	P(|error| >= λ·σ) <= 2·exp(-λ²/2), σ² = u²·(n-1)·P²·(1 + 2γ_n)².
//
// This is the bound of Higham and Mary with partial sums in place of Σ|p| (Hallman and
// Ipsen, "Precision-aware Deterministic and Probabilistic Error Bounds for Floating Point
// Summation", Numerische Mathematik 155, 2023), taken at the worst order. Blocks of K
// with scales sa and sb add (n_b+1)·(sa·sb·P_b)², two of them for the scales, and q blocks
// (q-1)·P², P being that of the scaled sums; bias and old C add one addition each, of
// all that there is. Where codes are scaled first, products take three roundings more:
// 3·(Σ|p|)². A result narrower than float32 was rounded once more: its
// error is the distance of the exact result to the interval that is rounded to what was
// got. Of many elements the one of the largest λ counts, times their number.
//
// In a narrow result an element is on the wrong side if it is not the exact result
// rounded. With d the distance of the exact result to the next tie, less the errors that
// elements share, that happens with probability at most q = min(1, 2·exp(-d²/2σ²)), and
// that c elements are, one of each class, under I, by Chernoff's inequality, with probability at
// most exp(c - μ - c·ln(c/μ)), μ = Σq < c.
//
// The squares of the errors of N elements, one of each class and less what they share,
// in units of their σ², have a sum of N·x or more, under I, with a probability of at most
// exp(-N/2·(x - 1 - ln x)), x > 1, as if they were normal: where E(exp(t·e)) <=
// exp(t²σ²/2), which is what Azuma's inequality follows from, E(exp(s·e²/σ²)) <=
// (1-2s)^(-1/2).
//
// # Populations
//
// With e_ij what was got less the exact result rounded to the type of C, of element (i,
// j), and f = e/σ, where σ is that of a sum and of the rounding to that type, the
// statistics are sums of w·f with weights that depend on the operands alone. Under S such
// a sum is one of signs thrown independently, and by the inequality of Hoeffding, whatever
// the size of errors and the order of additions (Efron, Journal of the American Statistical Association 64,
// 1969, is where sums are so normalized by themselves),
//
//	P(|Σwf| >= λ·norm) <= 2·exp(-λ²/2), norm² = Σ over classes (Σ|wf| in the class)².
//
// The weights are
//
//   - 1, and the sign of the exact result, over all of C: bias, and shrinking, as by
//     truncation;
//   - the same two over every row, every column and every tile of 16x16, 64x64 and
//     128x128;
//   - sign(a_ik)·sign(b_jk) over all of C for each k: a product that is lost, or whose
//     operand is another, for all elements;
//   - sign(b_jk) over row i for each (i, k), and sign(a_ik) over column j for each (j,
//     k): a single code of an operand that is another;
//   - what C would change by if subnormal codes of A, of B or of both were zero.
//
// # Where S fails, and what is done
//
// In a narrow result f is 0, or an element was taken to the other side of the tie that
// is next to its exact result: the side of that tie, which the operands alone decide, is
// the sign of f. Where data have few distinct values, and scales are nearly powers of
// two, all results may be next to ties, and all on one side. So what is known of the
// sides beforehand is not left to S: under
//
//	(T) the probability with which an error exceeds a distance falls with the distance in
//	    units of σ, by the same law for all elements of a sum,
//
// the mean of Σwf is Σ π(d)·w·s, s being the step from the exact result, rounded, over the
// tie at distance d, and π falling. By Abel's summation that is no more than the largest
// |Σw·s| over the elements nearer to ties than some distance, for any distance up to the
// limit of the test of elements. That much is allowed. In common data it is about what a
// walk of as many steps comes to, and in data where S would be wrong it is all that there
// is: the test then says nothing. What is left, about that mean, is taken as S takes it.
// That is no theorem where π is small on one side and large on the other: there the rate
// rests on the products of evidence.md.
//
// Some roundings are made once for many elements, and S knows nothing of them: that of
// the product of two scales, where a kernel forms it, and that of a code times its scale,
// where codes are scaled first. In one element they come to u·Σ|sa·sb·sum|, over the
// blocks of K, or to 2u·Σ|p|. Σ|w| times that over σ is allowed in all statistics. Outer
// scales, or their product or reciprocals, are rounded once for rows or for all of C, and
// may be applied to scales, to blocks or to the sum: each operand that has them, and each
// that has divisors, is allowed once more of that, and has one rounding more of each block
// and of C, as if it were an addition.
//
// A product p enters a sum by one addition, whose error is at most min(|p|, u·P) and may
// be of the same sign in all elements, as where small products are swallowed. The
// statistics of products and codes are allowed Σ|w|·u·P/σ besides.
//
// Data of few distinct values have residues that go one way in many elements. There
// correct kernels are controls: octavo's product, a plain loop in float32, and where codes
// are scaled first loops that do so. Twice the larger one of a control's statistics is
// allowed besides. Where a control by itself fails the tests of elements,
// variance, wrong sides, products or codes at a rate of one in a thousand, that test is
// void for these operands, and says so.
//
// # The rate
//
// A result has up to eight tests: elements, variance, wrong sides, all of C, parts of C,
// products, codes, and subnormals. Each gets an eighth of the rate, and in each every
// statistic the same part of it (Bonferroni): λ = sqrt(2·ln(16·n/rate)) of n statistics.
// Allowances only lower the rate. The bounds of Hoeffding are no equalities: a rate of one in a million
// is, for a Gaussian statistic, less by a factor of λ·sqrt(π/2), about nine.
//
// # What they were shown on
//
// Of 10,000 products of correct kernels, of which no result had been looked at, none raised the
// alarm at a rate of one in a million, nor at 0.1. Each of the faults that were declared raises it,
// at K up to 16,384, where most leave every element within its worst-case bound. The file
// evidence.md beside the source has what was declared, what was changed since, and the tables.
//
// # Sums of models
//
// Where the claim is the bound of a model of matrix instructions, errors are compared with
// those of the model's own sums, of which three are predicted: with the products of a block
// of K as they come, backwards and shuffled. A kernel may add in another order, so errors
// may be half as large again as the largest of the three, in all of C and in each row,
// column and tile, and those of an element four times the largest that was predicted; one
// cut of a sum's last bit is always allowed. Unlike the above that is no bound but was
// measured: of 432 results of kernels that keep to the models of Hopper, Ada and Blackwell,
// in orders of their own, in splits or better, in F32, BF16 and F16, of normal, positive,
// wide and two-valued data at K = 512 and 2048, none raises the alarm, and the largest
// score is 0.46 of its limit. Sums that are never promoted raise it where a promotion every
// 128 products is claimed: at K = 512 they are off 2.3 times as far.
//
//	OCTAVO_EXHAUSTIVE=1 go test ./oracle/power -run 'TestHonestModels|TestUnpromoted' -v
//
// # What is not judged
//
// Directed rounding is no subject of R or S: [Measure] refuses a claim of truncated sums.
// The bits of a model, [oracle.Predict], need no statistics: any change of one shows, and
// [Bits] says which faults change any. Elements that are not finite are left to the worst-case judge.
package power
