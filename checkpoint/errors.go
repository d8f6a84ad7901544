package checkpoint

import "errors"

// What an error of this package is about, for [errors.Is]; its text names the file, the
// tensor, the place and the value.
var (
	// ErrIndex is what is wrong where the index, the shards and the directory disagree.
	ErrIndex = errors.New("checkpoint: index and shards do not agree")

	// ErrConfig is what is wrong with config.json or hf_quant_config.json.
	ErrConfig = errors.New("checkpoint: configuration cannot be used")

	// ErrLayout is what is wrong with a tensor that its layout does not allow: a missing
	// companion, a wrong type or shape, a scale that cannot be.
	ErrLayout = errors.New("checkpoint: tensor does not fit its layout")

	// ErrUnread is a method of quantization that is not read.
	ErrUnread = errors.New("checkpoint: method of quantization is not read")

	// ErrPlan is what is wrong with a directory in which another conversion has begun.
	ErrPlan = errors.New("checkpoint: directory holds another conversion")

	// ErrUncalibrated is a weight of which [PlanOptions] lack the largest magnitude of the
	// input, which its layout needs.
	ErrUncalibrated = errors.New("checkpoint: input is not calibrated")

	// ErrLossy is a weight that loses something where [PlanOptions] allow no loss.
	ErrLossy = errors.New("checkpoint: conversion loses something")

	// ErrChanged is a file of the source that is no longer what it was.
	ErrChanged = errors.New("checkpoint: source has changed")
)
