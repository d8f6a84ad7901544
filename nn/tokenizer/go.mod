module github.com/octavo-fp8/octavo/nn/tokenizer

go 1.25.0

require (
	github.com/dlclark/regexp2/v2 v2.12.0
	github.com/octavo-fp8/octavo v0.1.0
	github.com/stretchr/testify v1.12.1
	golang.org/x/text v0.32.0
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect
