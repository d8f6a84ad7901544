package tensor

import "errors"

// What an error of this package is about, for [errors.Is]; its text names the
// tensor, the place and the value.
var (
	ErrShape = errors.New("tensor: shape, strides, block and lengths do not fit together")
	ErrBlock = errors.New("tensor: view starts inside a block")
	ErrScale = errors.New("tensor: scale is not one that its format holds")
	ErrCode  = errors.New("tensor: code does not fit into its bits")
)

var errNil = errors.New("tensor: the tensor is nil")
