package lab

import "math/rand/v2"

// pieceBytes is far more than a sequence, so that few windows see a seam.
const pieceBytes = 4096

// inPieces returns a text whose pieces are in another order, so that what is held out
// at its end is like the rest: the last files of a source tree are not.
func inPieces(data []byte, seed uint64) []byte {
	n := (len(data) + pieceBytes - 1) / pieceBytes
	mixed := make([]byte, 0, len(data))
	for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(n) {
		mixed = append(mixed, data[i*pieceBytes:min((i+1)*pieceBytes, len(data))]...)
	}
	return mixed
}
