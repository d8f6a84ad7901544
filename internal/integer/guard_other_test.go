//go:build !linux

package integer

import "testing"

func guarded[T any](_ *testing.T, n int) []T { return make([]T, n) }

func guardedBefore[T any](_ *testing.T, n int) []T { return make([]T, n) }
