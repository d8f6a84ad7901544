package layers

import (
	"github.com/octavo-fp8/octavo/parallel/collective"
)

// A table that is tied to the head is moved by the first stage. The last has a copy, and
// what ZeRO leaves its ranks of that.

// tiedPair returns the ranks of a pipeline that have the table, by their places in it, and
// whether there are two.
func (p *llamaPart) tiedPair() (first, last int, ok bool) {
	last = p.layout.Pipeline - 1
	return 0, last, p.cfg.TieHead && last > 0
}

// sendTied sends the head's gradient of the micro-batch to the first stage.
func (p *llamaPart) sendTied() error {
	first, _, _ := p.tiedPair()
	for _, q := range p.tied {
		x := q.exchange(p.layout.exchange(tiedGradients), q.Param)
		if err := p.pipeline.Send(x, first, p.tiedSubject(q), "send", q.Grad); err != nil {
			return err
		}
	}
	return nil
}

// receiveTied adds the head's gradient of the micro-batch to the first stage's.
func (p *llamaPart) receiveTied() error {
	_, last, ok := p.tiedPair()
	if !ok {
		return nil
	}
	for _, q := range p.embeddingParams {
		grad, err := p.pipeline.Take(last, p.tiedSubject(q))
		if err != nil {
			return err
		}
		collective.AddTo(q.Grad, grad)
	}
	return nil
}

func (p *llamaPart) tiedSubject(q *partParam) collective.Subject {
	return collective.Subject{What: tiedGradients, Name: q.Name, Part: p.micro, Size: len(q.Grad)}
}

// copyTied gives the last stage what the first has moved.
func (p *llamaPart) copyTied() error {
	first, last, ok := p.tiedPair()
	switch {
	case !ok:
	case p.pipeline.ID() == first:
		for _, q := range p.embeddingParams {
			if err := p.pipeline.Send(collective.Exchange{Name: q.Name}, last, tableSubject(q), "send", q.moved.Value); err != nil {
				return err
			}
		}
	case p.pipeline.ID() == last:
		for _, q := range p.tied {
			table, err := p.pipeline.Take(first, tableSubject(q))
			if err != nil {
				return err
			}
			copy(q.moved.Value, table)
		}
	}
	return nil
}

func tableSubject(q *partParam) collective.Subject {
	return collective.Subject{What: "tied weight", Name: q.Name, Part: 0, Size: len(q.moved.Value)}
}
