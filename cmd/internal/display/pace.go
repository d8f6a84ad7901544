package display

import "time"

const (
	markEvery = time.Second // marks are that far apart at least
	mostMarks = 20          // that are looked back at
)

// pace is how fast an operation goes: what it did since the oldest of some marks.
type pace struct{ marks []mark }

type mark struct {
	when time.Time
	done int64
}

// add hears how far the operation is.
func (p *pace) add(now time.Time, done int64) {
	if n := len(p.marks); n > 0 && now.Sub(p.marks[n-1].when) < markEvery {
		return
	}
	p.marks = append(p.marks, mark{now, done})
	if len(p.marks) > mostMarks {
		p.marks = p.marks[1:]
	}
}

// rate returns the units done in a second, 0 while that is not known: before as long has passed
// as is from one mark to the next.
func (p *pace) rate(now time.Time, done int64) float64 {
	first := p.marks[0]
	measured := now.Sub(first.when)
	if done <= first.done || measured < markEvery {
		return 0
	}
	return float64(done-first.done) / measured.Seconds()
}
