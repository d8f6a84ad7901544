package machine

import (
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWithoutFeatures(t *testing.T) {
	var out strings.Builder
	require.NoError(t, Info{Build: Build{Version: "v1"}}.WriteText(&out))
	require.Contains(t, out.String(), "processor features: none\n")
}

func TestBuild(t *testing.T) {
	setting := func(key, value string) debug.BuildSetting { return debug.BuildSetting{Key: key, Value: value} }
	commit := setting("vcs.revision", "c0ffee")
	for want, info := range map[string]debug.BuildInfo{
		"(devel), commit not recorded":       {},
		"v0.1.0":                             {Main: debug.Module{Version: "v0.1.0"}},
		"(devel), commit c0ffee":             {Settings: []debug.BuildSetting{commit, setting("vcs.modified", "false")}},
		"v0.1.0, commit c0ffee with changes": {Main: debug.Module{Version: "v0.1.0"}, Settings: []debug.BuildSetting{commit, setting("vcs.modified", "true")}},
	} {
		require.Equal(t, want, buildOf(&info).String())
	}
}
