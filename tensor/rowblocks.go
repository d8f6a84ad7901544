package tensor

import "github.com/octavo-fp8/octavo/fp8"

// quantizeRowBlocks is quantizeRows for blocks of one row when nobody hears of
// each: a row's blocks are searched for their amax, and then encoded, together.
func quantizeRowBlocks[T fp8.Float](t *Tensor, src []T, lo, hi int, q Quantization, total *fp8.Stats) {
	_, cols := t.Dims()
	_, block := t.Block.Extents(t.Dims())
	encoder := fp8.NewEncoder(t.Format, q.Policy)
	const most = 64
	var amax [most]float32
	var nan [most]bool
	var scales [most]fp8.Scale
	for i := lo; i < hi; i++ {
		stored := t.ScaleRow(i)
		for j := 0; j < cols; j += most * block {
			from, to := i*cols+j, i*cols+min(j+most*block, cols)
			n := ceilDiv(to-from, block)
			fp8.AmaxBlocks(amax[:n], nan[:n], src[from:to], block)
			for k := range n {
				scales[k] = q.Scale(amax[k], nan[k])
				stored[j/block+k] = storedScale(scales[k])
			}
			fp8.EncodeBlocks(&encoder, t.Codes[from:to], src[from:to], scales[:n], block, uint64(from), total)
		}
	}
}
