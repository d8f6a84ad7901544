// Package safetensors reads and writes safetensors files, the checkpoint
// format of https://github.com/huggingface/safetensors.
//
// # Format
//
// A file is a header followed by data:
//
//	8 bytes    length n of the header text, little-endian
//	n bytes    JSON object, padded at the end with spaces
//	the rest   data: tensors back to back, row-major, little-endian
//
// Each member of the JSON object describes one tensor,
//
//	"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
//
// where the offsets count bytes from the start of the data. One member,
// "__metadata__", may hold a map of strings instead. A shape of [] is a scalar;
// a dimension of 0 makes a tensor without data.
//
// A shape counts elements also where they are less than a byte (F4, F6_E2M3, F6_E3M2):
// those of a tensor lie one after the other, without gaps between rows, and must fill
// whole bytes, so that [3, 6] of F4 takes 9 bytes and [3, 5] is an error. Of F4 the first
// element is the low half of a byte, as in PyTorch's float4_e2m1fn_x2. The reference
// implementation gives F6 no order within its bytes; octavo has the low bits first there
// too. Many checkpoints hold such codes in U8, whose shape counts bytes.
//
// # Reading
//
// [Open] and [NewReader] read the header and nothing else; tensors are then read
// one at a time: whole as numbers ([Elements], [File.Float32s]), in parts into
// memory that is there already ([ReadElements]), or as bytes, whole, in parts or as a
// stream ([File.Bytes], [File.ReadBytes], [File.Section]), which are handed out as
// they are stored, in little-endian order. What FP8 codes are worth depends on scales
// that this package knows nothing of.
//
// # Writing
//
// A [Writer] is told every type and shape first, since the header comes first,
// and then takes the data in that order, in pieces of any size. The same
// arguments give the same bytes: metadata is sorted by key, tensors lie in the
// order given, and the header is padded so that data begins at a multiple of 8.
// A [WriterAt] writes the same file from data that comes in any order. [WriteFile],
// [WriteFileFunc] and [WriteFileAtFunc] leave either a complete file or none; a file that
// they replace passes on its permissions, and a symbolic link to it stays one.
//
// # Limits
//
// Files come from strangers, so what does not fit the format exactly is an
// error that says which tensor and where: a header over 100 MB (the limit of the
// reference implementation) or longer than the file; anything but one JSON object
// in UTF-8; half of a surrogate pair; a key that is unknown, missing or repeated;
// an unknown dtype; sizes that overflow 63 bits, even when another dimension is 0;
// a dimension that does not fit an int; elements that do not fill whole bytes; offsets that disagree
// with type and shape, overlap, leave a hole, or do not end where the file ends.
//
// What is wrong with a file is [ErrFile]. A tensor that no memory of this machine could
// hold is [ErrTooLarge], before anything is allocated: a sparse file of a terabyte takes
// no room on disk. Such a tensor can be read in parts.
//
// No argument makes a function panic: a nil reader, writer or function is an error, and
// a nil [File] has no tensors. A header of the limit, with a million tensors, takes a
// second or two to open and about five times its size in memory.
//
// # Concurrency
//
// A [File] may be read, and a [WriterAt] written, by several goroutines at once. A
// [Writer] may not be shared.
package safetensors
