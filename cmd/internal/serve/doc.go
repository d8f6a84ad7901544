// Package serve answers the requests of another program on standard input and output, one
// after the other, so that a thousand small checks of a kernel cost one start of the
// command. The Python package octavo is such a program, and octavo serve is the command.
//
// # Frames
//
// Both directions are frames and nothing else. All integers are little-endian:
//
//	4 bytes  "OCTF"
//	4 bytes  H, the length of the header, at most 1 MiB
//	8 bytes  D, the length of the data
//	H bytes  the header, a JSON object
//	D bytes  the data: a safetensors file of the arrays, or nothing
//
// The first frame that comes out is a greeting, before anything is read:
//
//	{"protocol": 1, "version": "v0.1.0", "operations": ["audit", "check", ...]}
//
// Who does not speak that protocol should say so and go away. A request is
//
//	{"protocol": 1, "id": 7, "operation": "check", "progress": false, "options": {...}}
//
// and the arrays that the operation wants, by name. Its answer has the same id and either
// a result, with the arrays that are part of it, or an error:
//
//	{"id": 7, "result": {...}}
//	{"id": 7, "error": {"kind": "input", "message": "tensor \"a_scales\": ..."}}
//
// Where progress is true, frames with {"id": 7, "progress": {"operation": "exact", "done":
// 3, "total": 8}} come before it, at most ten a second. The kind of an error is "input"
// where the request or its arrays are wrong, which the message names with the tensor, the
// place and the value; "internal" where octavo is; and "frame" where what was read is no
// frame. After the last the boundaries of frames are lost: it has no id, and the server ends
// with an error. It answers everything else and goes on.
//
// A request may be sent before the one before is answered; it waits. When its input ends the
// server gives up what it is at and ends: it does not outlive the program that asks. An
// option or an array that an operation does not know is an error.
//
// # Operations
//
// Codes are F8_E4M3, F8_E5M2, F8_E4M3FNUZ, F8_E5M2FNUZ, F4, F6_E2M3, F6_E3M2, or U8, one a
// byte, with a format among the options; those of an answer have a byte each. Scales are
// F32, F8_E8M0 or F8_E4M3, which is UE4M3; there may be outer scales, F32, in a_outer,
// b_outer or, where there is one operand, outer, which divide with the option
// a_outer_divides and so on. Blocks are texts such as "1x128"; what is left out follows from
// the shapes. Of a and b the options are a_format, a_block and so on.
//
//	check       a, a_scales, b, b_scales, c, bias if any, old if C was added to it;
//	            options model, bound, promote, scale_order, sample (elements, suspects,
//	            rows, cols, tiles, seed), alarms, workers, page.
//	            Result pass, outcome, failure, text and verdict, as octavo verify has
//	            them, and the array page if it was asked for: HTML. All name options
//	            where those of octavo verify name flags
//	check_attention
//	            q, q_scales, k, k_scales, v, v_scales, out, lse, sinks, cu_seqlens_q,
//	            cu_seqlens_k, seqlens_k, block_table; options those flags of octavo verify
//	            attention that do not name what is read, with _ for -: the window is an
//	            object with left and right, a block a number of tokens; workers, page.
//	            Scales have the shapes that octavo verify attention --help lists; BF16 has
//	            none. Results are those of check
//	check_quantizer
//	            x, codes, scales, and outer scales if any, in the layouts that octavo verify
//	            quantizer reads; options recipe, which has to be there, block, format,
//	            rounding, scale_format, scale_layout, packed, outer_divides, workers, page.
//	            Results are those of check
//	audit       a, a_scales, b, b_scales, bias, old; options those of check that are about
//	            the kernel, type of C (float32, bfloat16 or float16), criteria of the test
//	            (as package audit's Criterion), defaults (assert_close, allclose or
//	            assert_allclose), reference (exact, canonical, dequantized, itself or a
//	            GPU), wide, alone (without a proposal), all (faults in the text), seed.
//	            Result verdict, text and report, as octavo audit has them
//	multiply    a, a_scales, b, b_scales, bias if any, old if it is to be added to; options
//	            model, promote, scale_order, type (F32, BF16 or F16), workers. Array c
//	encode      values, floats; options format, overflow, inf, nan, zero, rounding, seed,
//	            quotient. Array codes, result stats
//	decode      codes; option format. Array values, F32
//	quantize    values, floats; options recipe, format, block, overflow and so on, epsilon.
//	            Arrays codes, scales and, if there are any, outer; result format, block,
//	            scale_format, outer_divides, stats
//	dequantize  codes, scales; options format, block. Array values, F32
//	operands    options m, n, k, format, block, seed: operands whose product is exact in
//	            any order, as package power makes them. Arrays a, a_scales, b, b_scales
//	cancelling  the same but for the block, as package oracle makes them
//	generate    options pattern, rows, cols, block, format, seed: values of package
//	            oracle's Generator. Array values, F32
package serve
