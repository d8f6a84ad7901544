package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

func TestMissing(t *testing.T) {
	entries := []kernels.Entry{{Operation: "convert.Encode", Level: cpu.AVX2}, {Operation: "gemm.Multiply", Level: cpu.Generic}, {Operation: "gemm.Multiply", Level: cpu.AVX2}, {Operation: "gemm.Multiply", Level: cpu.AMX}}
	none := func(f cpu.Feature) bool { return f == cpu.NoFeature }
	levels := []cpu.Level{cpu.Generic, cpu.AVX2}
	log := "convert convert.Encode avx2\nfp8 convert.Encode avx2\ngemm gemm.Multiply generic\ngemm gemm.Multiply avx2\n"
	require.Empty(t, missing(log, levels, entries, none))
	require.Equal(t, []string{"gemm.Multiply at level amx", "package gemm at level amx"}, missing(log, append(levels, cpu.AMX), entries, none))
	require.Equal(t, []string{"convert.Encode at level avx2", "gemm.Multiply at level generic", "gemm.Multiply at level avx2",
		"package gemm at level generic", "package fp8 at level avx2", "package gemm at level avx2"}, missing("", levels, entries, none))
	require.Equal(t, []string{"package fp8 at level avx2"}, missing("convert convert.Encode avx2\ngemm gemm.Multiply generic\ngemm gemm.Multiply avx2\n", levels, entries, none))

	// A feature is required where it is there.
	entries = append(entries, kernels.Entry{Operation: "gemm.Dot", Level: cpu.AVX2, Feature: cpu.AVXVNNI})
	require.Empty(t, missing(log, levels, entries, none))
	every := func(cpu.Feature) bool { return true }
	require.Equal(t, []string{"gemm.Dot at level avx2+avxvnni"}, missing(log+"gemm gemm.Dot avx2\n", levels, entries, every))
	require.Empty(t, missing(log+"gemm gemm.Dot avx2+avxvnni\n", levels, entries, every))
}
