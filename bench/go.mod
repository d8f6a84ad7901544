module github.com/octavo-fp8/octavo/bench

go 1.25.0

require (
	github.com/octavo-fp8/octavo v0.1.0
	github.com/viterin/vek v0.4.3
	github.com/x448/float16 v0.8.4
	gonum.org/v1/gonum v0.17.0
)

require (
	github.com/chewxy/math32 v1.11.1 // indirect
	github.com/viterin/partial v1.1.0 // indirect
	golang.org/x/exp v0.0.0-20230817173708-d852ddb80c63 // indirect
	golang.org/x/sys v0.47.0 // indirect
)
