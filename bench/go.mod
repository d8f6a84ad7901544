module github.com/octavo-fp8/octavo/bench

go 1.26.0
