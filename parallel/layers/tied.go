package layers

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
		x := q.exchange(p.layout, tiedGradients)
		rows, cols := x.shape(len(q.Grad))
		m, err := x.packer(p.pipeline.ctx, opSend).pack(x.Wire, q.Grad, rows, cols, nil, uint64(p.micro))
		if err != nil {
			return err
		}
		if err := p.pipeline.sendParcel(first, p.tiedSubject(q), m); err != nil {
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
		l, err := p.pipeline.receiveAbout(last, p.tiedSubject(q))
		if err != nil {
			return err
		}
		grad := make([]float32, len(q.Grad))
		l.parcel.decode(grad)
		addTo(q.Grad, grad)
	}
	return nil
}

func (p *llamaPart) tiedSubject(q *partParam) subject {
	return subject{tiedGradients, q.Name, p.micro, len(q.Grad)}
}

// copyTied gives the last stage what the first has moved.
func (p *llamaPart) copyTied() error {
	first, last, ok := p.tiedPair()
	switch {
	case !ok:
	case p.pipeline.id == first:
		for _, q := range p.embeddingParams {
			if err := p.sendTable(q, last); err != nil {
				return err
			}
		}
	case p.pipeline.id == last:
		for _, q := range p.tied {
			m, err := p.pipeline.receiveParcel(first, tableSubject(q))
			if err != nil {
				return err
			}
			m.decode(q.moved.Value)
		}
	}
	return nil
}

func (p *llamaPart) sendTable(q *partParam, to int) error {
	x := Exchange{Name: q.Name}
	m, err := x.packer(p.pipeline.ctx, opSend).pack(x.Wire, q.moved.Value, 1, len(q.moved.Value), nil, 0)
	if err != nil {
		return err
	}
	return p.pipeline.sendParcel(to, tableSubject(q), m)
}

func tableSubject(q *partParam) subject {
	return subject{"tied weight", q.Name, 0, len(q.moved.Value)}
}
