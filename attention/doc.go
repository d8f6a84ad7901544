// Package attention computes attention over operands in FP8, bfloat16 and float32, with the same
// bits on every machine and for any number of workers.
//
// A [Problem] is one attention: softmax(scale·Q·Kᵀ)·V of every query head, under a mask.
// [Forward] computes it in the canonical order and no other. All numbers are float32, rn is
// one rounding to nearest even, and for each query head h and row i:
//
//  1. The score s_j is the product of row i of Q and row j of K as package gemm defines it:
//     its steps 1 to 3 and the outer scales. A row of values has the scale 1. Products
//     are added as fused multiply-adds do; those of two FP8 values are exact anyway.
//     Then z_j = rn(SL·s_j), SL = float32(float64(scale)·1.4426950408889634), which is the
//     score in units of ln 2. With a cap, s_j becomes tanh(rn(s_j·rn(scale/cap))) before, tanh
//     that of package elementary, and the cap takes the place of the scale in SL.
//  2. Keys come in tiles of 64 from key 0 on, ascending. A masked key takes no part at all,
//     so that a NaN in it does not matter; a tile without other keys changes nothing.
//     At the start M = -Inf, l = +0 and O = +0.
//  3. M' = max(M, z_j of the tile), NaN if one of them is. alpha = 1 in the first tile that
//     has keys, and exp2(rn(M-M')) in others. exp2 and log2 are those of package elementary,
//     in float64 and rounded once.
//  4. p_j = exp2(rn(rn(z_j-M')+offset)), the offset as P's format wants it, see [PFormat].
//     They are summed in 16 lanes, key j of the tile in lane j mod 16, each from +0 and
//     ascending, and then lane t is added to lane t+8, t+4, t+2 and t+1, pairwise: for
//     n = 8, 4, 2, 1, lane t, t < n, becomes lane t plus lane t+n.
//     l becomes rn(rn(l·alpha)+sum).
//  5. P_j is p_j in P's format, to nearest even, or p_j itself where V is of float32s and the
//     format is bfloat16. Where scales of V vary from token to token,
//     it is rn(p_j·rn(vs_j/vmax)) in that format, vs_j the scale of the token and vmax the
//     largest of the head's keys that is not NaN; where both are 0 the quotient is 1.
//  6. O_d becomes rn(rn(O_d·alpha)+sum), the sum that of P_j·v_jd, v the decoded codes, in
//     the order of gemm's step 2: chunks of 32 keys from the tile's start, even and odd keys
//     by themselves, as fused multiply-adds. Where scales of V vary both from token to token
//     and along a token's row, or there are outer ones (NVFP4, MXFP8), v is the value with
//     its scales, rounded to float32 once as package tensor defines it, and neither P nor the
//     output is scaled: there are no shares in step 5, and F_d is 1 in step 8.
//  7. M becomes M'. After the last tile lse2 = rn(M+rn(log2(l)-offset)). Where
//     there was no key the output is 0 and lse2 is -Inf, with a sink or without.
//     l' = l, or with a sink l' = rn(l+exp2(rn(rn(rn(sink·L)-M)+offset))), L = float32(log2 e).
//  8. out_d = rn(O_d·rn(rn(1/l')·F_d)), F_d the scale of V of the head and the column, vmax
//     where scales vary from token to token. The log-sum-exp is rn(lse2·float32(ln 2)); the
//     sink is no part of it.
//
// With [Options].Splits of 2 or more that is done for each split, of ceil(tiles/splits)
// consecutive tiles, without the sink. Then, s ascending: m = max lse2_s, t the sum from +0
// of exp2(rn(lse2_s-m)), G = rn(m+log2(t)), G' = G or with a sink
// rn(G+log2(rn(1+exp2(rn(rn(sink·L)-G))))), out_d the sum from +0 of
// rn(exp2(rn(lse2_s-G'))·out_sd), and the log-sum-exp is rn(G·float32(ln 2)).
//
// A NaN result is always the canonical one, 7FC00000. A NaN of Q, or of a key that is not
// masked, makes the row and its log-sum-exp NaN, and so does a score that is +Inf, or -Inf
// where none up to the end of its tile is larger. A NaN of a value that is not masked, and an
// infinity whose P is 0, make that column of the row NaN.
//
// K and V come to the loop through the interface source of source.go, which caches of keys
// and values implement too.
package attention
