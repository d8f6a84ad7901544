package checkpoint

import (
	"encoding/json"
	"math"
	"path/filepath"

	"github.com/octavo-fp8/octavo/internal/inputfile"
	"github.com/octavo-fp8/octavo/internal/jsonfloat"
	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// CertificateName is the name of the file that says what a conversion lost. CertificatePage is
// that of a page for people with the same, which octavo's command writes beside it.
const (
	CertificateName = "certificate.json"
	CertificatePage = "certificate.html"
)

// mostCertificate bounds what is read of a certificate: a kilobyte for each of a million
// tensors.
const mostCertificate = 1 << 30

// Certificate says what a conversion has written and what it lost. It depends on the source,
// the plan and [Options.Strip] and on nothing else, however often the conversion was cut off.
type Certificate struct {
	Layout string `json:"layout"`
	Plan   string `json:"plan"` // see [Plan.Digest]

	// Lossless says that every weight has the values of the source, to the bit, which was
	// proved by reading back what was written; Proof says so in words.
	Lossless bool   `json:"lossless"`
	Proof    string `json:"proof,omitempty"`

	// NotUnderstood are tensors that may hold codes of a method that is not known: they were
	// copied as they are, and what became of their values is not known. Where there are some,
	// this certifies nothing.
	NotUnderstood []string `json:"notUnderstood,omitempty"`

	// Smoothed says what was done to the weights before they were converted, "" for nothing: what
	// is said of losses is said of the weights after it.
	Smoothed string `json:"smoothed,omitempty"`

	// LeftOut are scales of inputs and of cached keys and values for which the layout has no place.
	LeftOut []string `json:"leftOut,omitempty"`

	Files   []FileSum    `json:"files"` // all but the certificate
	Tensors []WeightLoss `json:"tensors"`
}

// FileSum is a file that was written.
type FileSum struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	CRC32 string `json:"crc32c"` // eight hexadecimal digits
}

// WeightLoss says what became of a weight.
type WeightLoss struct {
	Name       string     `json:"name"`
	File       string     `json:"file"`
	From       string     `json:"from"` // its scheme, or the type of its values
	To         string     `json:"to"`
	Arithmetic Arithmetic `json:"arithmetic,omitempty"`
	Shape      []int      `json:"shape"`
	Elements   int64      `json:"elements"`

	// Copied says that the bytes are those of the source. There is no loss then.
	Copied bool `json:"copied,omitempty"`

	// Exact says that no value changed.
	Exact bool `json:"exact"`

	// Claim is the proof that codes under scales that are powers of two lose nothing, or what
	// breaks it; nil where there was nothing to claim.
	Claim *ProofSummary `json:"claim,omitempty"`

	SQNR    jsonfloat.Number `json:"sqnrDecibels"` // +Inf if nothing was lost, NaN if all values are 0
	Largest jsonfloat.Number `json:"largestError"`
	Where   []int            `json:"largestErrorAt,omitempty"` // the place of it

	Saturated       int64 `json:"saturated"`
	Flushed         int64 `json:"flushed"`         // values that were not 0 and became 0
	BecameNonFinite int64 `json:"becameNonFinite"` // though finite
	NonFinite       int64 `json:"nonFinite"`       // NaN or infinite in the source
}

// ReadCertificate reads the certificate of the model in a directory. It is an error of the
// file system if there is none, and ErrConfig if it is none.
func ReadCertificate(dir string) (*Certificate, error) {
	path := filepath.Join(dir, CertificateName)
	data, err := inputfile.ReadAll(path, mostCertificate)
	if err != nil {
		return nil, err
	}
	c := new(Certificate)
	if err := json.Unmarshal(data, c); err != nil {
		return nil, sentinel.Errorf(ErrConfig, "%s: it is no certificate: %w", path, err)
	}
	return c, nil
}

// lossOf says what became of the weight of a target.
func lossOf(t *Target, r *Result, file string) WeightLoss {
	l := WeightLoss{
		Name: r.Name, File: file, From: storedAs(t.Weight.Scheme, t.Weight.Parts[Codes]),
		To: string(t.Parts[0].DType), Arithmetic: t.Arithmetic,
		Shape: t.Weight.Shape, Elements: t.Weight.Len(), Copied: t.Copied(),
		Saturated: r.Stats.Saturated(), Flushed: r.Stats.Flushed,
		BecameNonFinite: r.Stats.BecameNonFinite, NonFinite: r.Stats.NonFinite(),
	}
	if t.Scheme != nil {
		l.To = t.Scheme.Name
		if t.crosses() {
			l.Shape = swapped(l.Shape)
		}
	}
	if r.Error == nil {
		l.Exact, l.SQNR = true, jsonfloat.Number(math.Inf(1))
		return l
	}
	e := r.Error
	l.Exact = e.Squared == 0 && l.NonFinite == 0 && l.BecameNonFinite == 0
	l.SQNR, l.Largest = jsonfloat.Number(e.SQNR()), jsonfloat.Number(e.Largest)
	if e.Largest > 0 {
		l.Where = place(e.Where, l.Shape)
	}
	return l
}

// storedAs names a scheme, or the type of values.
func storedAs(s *Scheme, e Entry) string {
	if s != nil {
		return s.Name
	}
	return string(e.DType)
}

// place returns the indexes of an element.
func place(i int64, shape []int) []int {
	at := make([]int, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		at[d] = int(i % int64(shape[d]))
		i /= int64(shape[d])
	}
	return at
}
