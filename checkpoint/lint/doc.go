// Package lint finds what is wrong with checkpoints before a loader does: scales that are
// absent, misnamed or of another weight, an index that lies, configurations that contradict
// the tensors, codes that no quantizer writes.
//
// [Check] looks at one checkpoint by all [Rules]. Rules are a table; each is a function of
// what the files say, and to add one is to add a row. Those that need the data of tensors
// share a single pass over it, on all processors, in bounded memory: codes in strips of rows,
// and of formats of four bits only those whose scales are zero. [Options.Headers] leaves it
// out.
//
// Rules that are about quantization are silent where the method is one whose tensors package
// checkpoint does not know, such as GPTQ: [Report.NotJudged] has those. Rules that need config.json
// are silent where there is none: a part of a model is judged by what is in it.
//
// What cannot be seen in files is not found: a square grid of scales that was transposed,
// since codes fill their format under any scale, and zero points or permutations of rows.
//
// # Sources
//
// Rules name the reports of the defect, as repository#number. What loaders do is read in the
// sources of vLLM, SGLang, transformers, compressed-tensors, ModelOpt and DeepSeek-V3.
package lint
