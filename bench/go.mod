module github.com/octavo-fp8/octavo/bench

go 1.26.0

require (
	github.com/octavo-fp8/octavo v0.0.0
	gonum.org/v1/gonum v0.17.0
)

require (
	github.com/x448/float16 v0.8.4
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/octavo-fp8/octavo => ../
