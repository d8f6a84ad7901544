//go:build !(linux && amd64)

package cpu

import "errors"

func requestAMX() error { return errors.ErrUnsupported }
