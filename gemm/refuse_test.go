package gemm_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/tensor"
)

const sentinel = 12345

// multiplyRefused multiplies into a C full of sentinels, all of which must still
// be there.
func multiplyRefused(t *testing.T, a, b *tensor.Tensor, o gemm.Options) error {
	t.Helper()
	m, _ := a.Dims()
	n, _ := b.Dims()
	c := make([]float32, max(m*n, 0))
	for i := range c {
		c[i] = sentinel
	}
	err := gemm.Multiply(t.Context(), c, a, b, o)
	if err != nil {
		for i := range c {
			require.Equal(t, float32(sentinel), c[i], "C has been written to")
		}
	}
	return err
}

var advice = regexp.MustCompile(`^gemm: tensor "a" in blocks of (\S+) and tensor "b" in blocks of (\S+): ` +
	`(?:the scales of "([ab])" vary from element to element of the sum: requantize it|` +
	`neither extent along K divides the other: requantize "(b)") in blocks of (\S+)$`)

// TestBlocksRefused checks all pairs of blocks that the contract does not allow:
// the error names both, and what it advises leads to a product.
func TestBlocksRefused(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	refused, each := 0, 1
	if testing.Short() {
		each = 5
	}
	for i, blockA := range blocks {
		for j, blockB := range blocks {
			for n, k := range kSizes {
				if (i+j+n)%each != 0 {
					continue
				}
				a := random(r, "a", fp8.E4M3, blockA, kind{}, 6, k)
				b := random(r, "b", fp8.E4M3, blockB, kind{}, 4, k)
				err := multiplyRefused(t, a, b, gemm.Options{})
				if allowed(blockA, blockB, k) {
					require.NoError(t, err, describe(a, b))
					continue
				}
				refused++
				for steps := 0; err != nil; steps++ {
					require.Less(t, steps, 2, "following advice does not end: %v", err)
					said := advice.FindStringSubmatch(err.Error())
					require.NotNil(t, said, err.Error())
					require.Equal(t, []string{a.Block.String(), b.Block.String()}, said[1:3])
					block, parseErr := tensor.ParseBlock(said[5])
					require.NoError(t, parseErr)
					if said[3]+said[4] == "a" {
						require.Equal(t, a.Block.Rows, block.Rows)
						a = random(r, "a", fp8.E4M3, block, kind{}, 6, k)
					} else {
						require.Equal(t, b.Block.Rows, block.Rows)
						b = random(r, "b", fp8.E4M3, block, kind{}, 4, k)
					}
					err = multiplyRefused(t, a, b, gemm.Options{})
				}
				got := make([]float32, 24)
				require.NoError(t, gemm.Multiply(t.Context(), got, a, b, gemm.Options{}))
				require.NoError(t, differ(got, reference(a, b)))
			}
		}
	}
	require.Greater(t, refused, 1000/each)
}

func TestBlockMessages(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for want, blocks := range map[string][2]tensor.Block{
		`gemm: tensor "a" in blocks of 128x1 and tensor "b" in blocks of 1x32: the scales of "a" vary from element to element of the sum: requantize it in blocks of 128x32`:    {{Rows: 128, Cols: 1}, {Rows: 1, Cols: 32}},
		`gemm: tensor "a" in blocks of tensor and tensor "b" in blocks of allx1: the scales of "b" vary from element to element of the sum: requantize it in blocks of allx128`: {{}, {Cols: 1}},
		`gemm: tensor "a" in blocks of 1x96 and tensor "b" in blocks of 64x64: neither extent along K divides the other: requantize "b" in blocks of 64x96`:                     {{Rows: 1, Cols: 96}, {Rows: 64, Cols: 64}},
	} {
		a := random(r, "a", fp8.E4M3, blocks[0], kind{}, 3, 200)
		b := random(r, "b", fp8.E4M3, blocks[1], kind{}, 3, 200)
		require.EqualError(t, multiplyRefused(t, a, b, gemm.Options{}), want)
	}
}

func TestUnequalK(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	a := random(r, "a", fp8.E4M3, tensor.Block{}, kind{}, 2, 3, 5)
	b := random(r, "b", fp8.E4M3, tensor.Block{}, kind{}, 3, 6)
	require.EqualError(t, multiplyRefused(t, a, b, gemm.Options{}),
		`gemm: tensor "a" of shape [2 3 5] and tensor "b" of shape [3 6]: the last dimensions, along which products are summed, differ`)
}

// TestScalesRefused puts every kind of bad scale in every block of both
// operands.
func TestScalesRefused(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, math.Copysign(0, -1)} {
		for which, name := range []string{"a", "b"} {
			for i := range 4 {
				pair := []*tensor.Tensor{
					random(r, "a", fp8.E4M3, tensor.Block{Rows: 2, Cols: 16}, kind{}, 4, 32),
					random(r, "b", fp8.E4M3, tensor.Block{Rows: 2, Cols: 16}, kind{}, 4, 32),
				}
				pair[which].Scales[i] = float32(bad)
				err := multiplyRefused(t, pair[0], pair[1], gemm.Options{})
				require.EqualError(t, err, fmt.Sprintf("gemm: tensor %q: scale of block (%d, %d) is %v: want a finite number that is not negative", name, i/2, i%2, float32(bad)))
			}
		}
	}
}

func TestBrokenOperands(t *testing.T) {
	whole := func() *tensor.Tensor {
		return random(rand.New(rand.NewPCG(5, 5)), "whole", fp8.E4M3, tensor.Block{Rows: 1}, kind{}, 2, 3)
	}
	for want, change := range map[string]func(x *tensor.Tensor){
		`gemm: tensor "broken": unknown format Format(99)`:                                  func(x *tensor.Tensor) { x.Format = 99 },
		`gemm: tensor "broken": shape [2 3] needs 6 codes, there are 5`:                     func(x *tensor.Tensor) { x.Codes = x.Codes[:5] },
		`gemm: tensor "broken": shape [2 3] in blocks of row needs 2x1 scales, there are 1`: func(x *tensor.Tensor) { x.Scales = x.Scales[:1] },
		`gemm: tensor "broken": dimension 1 of shape [2 -3] is negative`:                    func(x *tensor.Tensor) { x.Shape = []int{2, -3} },
		`gemm: tensor "broken": block -1x2 has a negative extent`:                           func(x *tensor.Tensor) { x.Block = tensor.Block{Rows: -1, Cols: 2} },
	} {
		broken := whole()
		broken.Name = "broken"
		change(broken)
		require.EqualError(t, multiplyRefused(t, broken, whole(), gemm.Options{}), want)
		require.EqualError(t, multiplyRefused(t, whole(), broken, gemm.Options{}), want)
	}
}

// TestLengths: slices of the wrong length are errors with both lengths, before anything is
// written.
func TestLengths(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	a := random(r, "a", fp8.E4M3, tensor.Block{}, kind{}, 3, 4)
	b := random(r, "b", fp8.E4M3, tensor.Block{}, kind{}, 2, 4)
	for _, n := range []int{0, 5, 7} {
		c := make([]float32, n)
		err := gemm.Multiply(t.Context(), c, a, b, gemm.Options{Name: "y"})
		require.ErrorIs(t, err, gemm.ErrOperands)
		require.EqualError(t, err, fmt.Sprintf(`gemm: C of "y" has %d elements: it must have M·N = 3·2 = 6`, n))
		require.Equal(t, make([]float32, n), c)
	}
	for _, n := range []int{0, 1, 3} {
		c := make([]float16.Float16, 6)
		err := gemm.Multiply(t.Context(), c, a, b, gemm.Options{Bias: make([]float32, n)})
		require.ErrorIs(t, err, gemm.ErrOperands)
		require.EqualError(t, err, fmt.Sprintf("gemm: the bias has %d elements: it must have N = 2", n))
		require.Equal(t, make([]float16.Float16, 6), c)
	}
}

func TestCheckBlocks(t *testing.T) {
	tile, square := tensor.Block{Rows: 1, Cols: 128}, tensor.Block{Rows: 128, Cols: 128}
	for _, b := range []tensor.Block{tile, square, {}, {Rows: 1}, {Rows: 1, Cols: 32}, {Rows: 1, Cols: 256}} {
		require.NoError(t, gemm.CheckBlocks(tile, b))
		require.NoError(t, gemm.CheckBlocks(b, tile))
	}
	require.ErrorContains(t, gemm.CheckBlocks(tile, tensor.Block{Rows: 1, Cols: 96}), "neither extent along K divides the other")
	require.ErrorContains(t, gemm.CheckBlocks(square.Transposed(), tile.Transposed()), "vary from element to element")
}

func TestTooManyElements(t *testing.T) {
	const huge = math.MaxInt/2 + 1
	a := &tensor.Tensor{Name: "a", Shape: []int{huge, 0}}
	b := &tensor.Tensor{Name: "b", Shape: []int{huge, 0}}
	require.ErrorContains(t, gemm.Multiply(t.Context(), []float32{}, a, b, gemm.Options{}), "a product has too many elements")
}
