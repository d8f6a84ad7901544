//go:build !linux

package outdir

import "testing"

// withoutRights calls do as a user to whom permissions apply, which root is not.
func withoutRights(_ *testing.T, do func()) { do() }
