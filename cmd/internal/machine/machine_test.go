package machine

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWithoutFeatures(t *testing.T) {
	var out strings.Builder
	require.NoError(t, Info{Version: "v1"}.WriteText(&out))
	require.Contains(t, out.String(), "processor features: none\n")
}
