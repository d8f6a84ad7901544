// Package explore is `octavo explore`: a page on which people type values, or drop a file of
// them, and see what formats, scales and smoothing make of them. All that the page shows is
// computed and written here, into the page as it is made and, when people change something, by
// the same functions in WebAssembly: see package wasm.
package explore
