package benchreport

import (
	_ "embed"
	"io"

	"github.com/octavo-fp8/octavo/cmd/internal/page"
)

//go:embed peers.html
var peersBody string

var peersTemplate = page.New("peers", peersBody+tableBody, nil)

// peersPage is what the template is about.
type peersPage struct{ PeerResult }

func (r PeerResult) writePage(w io.Writer) error {
	return peersTemplate.Write(w, "octavo bench: beside its peers", peersPage{r})
}

// Tables are those of the text.
func (p peersPage) Tables() (all []htmlTable) {
	for _, t := range p.tables(putFull) {
		all = append(all, t.html(t.corner))
	}
	return all
}

// Legend says what is in the tables.
func (p peersPage) Legend() string {
	return legend
}
