package report

import "strings"

// Finding is what was measured, and what follows from it.
type Finding struct {
	Measured string // in words that are true whatever the numbers in them are
	Follows  []Conclusion

	atLength bool // something follows at full length only
}

// Conclusion is a sentence that the numbers choose.
type Conclusion struct {
	Holds     bool
	Then      string // what is said if it holds
	Otherwise string // and if it does not
}

// NewFinding returns a finding.
func NewFinding(measured string, follows ...Conclusion) Finding {
	return Finding{Measured: measured, Follows: follows}
}

// AtLength returns the finding as one from which nothing follows but in a run of full length:
// what does is about models that have been trained for a while, or more values than others
// have.
func (f Finding) AtLength() Finding {
	f.atLength = true
	return f
}

// If returns a conclusion. A condition on a figure that is not a number does not hold.
func If(holds bool, then, otherwise string) Conclusion {
	return Conclusion{Holds: holds, Then: then, Otherwise: otherwise}
}

// String returns the sentence that the numbers choose.
func (c Conclusion) String() string {
	if c.Holds {
		return c.Then
	}
	return c.Otherwise
}

// String returns what was measured, followed by what it shows.
func (f Finding) String() string {
	all := []string{f.Measured}
	for _, c := range f.Follows {
		all = append(all, c.String())
	}
	return strings.Join(all, " ")
}
