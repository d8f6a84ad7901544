package gemm

// FMA32 is fma32, for tests against exact arithmetic.
var FMA32 = fma32
