package loop_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"tutti/consumers/loop"
)

// TestPauseReasons: a write that fails starts a pause but does not change its reason, and each reason of a pause is one line of the log.
func TestPauseReasons(t *testing.T) {
	const blocked, silent, precise = "the index is blocked", "the index does not answer", "the index donors is closed"
	closed := errors.New("closed")
	for name, c := range map[string]struct {
		does func(p *loop.Pause)
		want []string
	}{
		"the check knows it better": {func(p *loop.Pause) {
			p.Start(blocked, false)
			p.Set(precise, closed)
			p.Start(blocked, false)
			p.Start(silent, true)
			p.Set(precise, closed)
		}, []string{precise}},
		"the check knows the same": {func(p *loop.Pause) {
			p.Start(blocked, false)
			p.Set(blocked, closed)
			p.Set(blocked, closed)
		}, []string{blocked}},
		"known":                      {func(p *loop.Pause) { p.Start(silent, true); p.Set(silent, closed) }, []string{silent}},
		"the check finds it open":    {func(p *loop.Pause) { p.Start(blocked, false); p.Clear(); p.Clear() }, []string{blocked}},
		"one after the other":        {func(p *loop.Pause) { p.Start(blocked, false); p.Clear(); p.Start(silent, true) }, []string{blocked, silent}},
		"another reason of the same": {func(p *loop.Pause) { p.Set(precise, closed); p.Set(silent, closed) }, []string{precise, silent}},
	} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			p := loop.New(nil, nil, nil, loop.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}).Pause
			p.Clear() // as after the first check
			c.does(p)
			lines := strings.Split(strings.TrimSpace(log.String()), "\n")
			if len(lines) != len(c.want) {
				t.Fatalf("the log is %q, want %q", lines, c.want)
			}
			for i, want := range c.want {
				if !strings.Contains(lines[i], `reason="`+want+`"`) {
					t.Errorf("line %d is %q, want %q", i, lines[i], want)
				}
			}
			if got := p.Reason(); got != "" && got != c.want[len(c.want)-1] {
				t.Errorf("paused for %q", got)
			}
		})
	}
}
