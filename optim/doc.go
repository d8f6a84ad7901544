// Package optim moves the parameters of package nn against their gradients: [AdamW],
// whose moments may be kept in BF16 or FP8, and a [Schedule] of learning rates.
package optim
