package download_test

import (
	"io"
	"testing"
	"testing/synctest"

	"tutti/internal/core"
	"tutti/internal/search/download"
)

// unread is a client that reads nothing until it disconnects.
type unread chan struct{}

func (c unread) Write([]byte) (int, error) {
	<-c
	return 0, io.ErrClosedPipe
}

// TestUnreadDownloads: unread downloads of one caller, and those of all anonymous callers together, leave capacity for others,
// and release it when they end.
func TestUnreadDownloads(t *testing.T) {
	anonymous := func(id string) core.Caller { return core.Caller{ID: id, Group: "anonymous"} }
	for name, tt := range map[string]struct {
		unread []core.Caller
		// most is the number of concurrent ones.
		most             int
		refused, another core.Caller
	}{
		"one address":            {[]core.Caller{{ID: "a"}}, 8, core.Caller{ID: "a"}, core.Caller{ID: "b"}},
		"one token":              {[]core.Caller{{ID: "k", Known: true}}, 8, core.Caller{ID: "k", Known: true}, anonymous("a")},
		"an anonymous address":   {[]core.Caller{anonymous("a")}, 4, anonymous("a"), anonymous("b")},
		"three of them":          {[]core.Caller{anonymous("a"), anonymous("b"), anonymous("c")}, 8, anonymous("d"), core.Caller{ID: "k", Known: true}},
		"two addresses have all": {[]core.Caller{{ID: "a"}, {ID: "b"}}, 16, core.Caller{ID: "c"}, core.Caller{}},
		"a token beside all":     {[]core.Caller{{ID: "k", Known: true}, anonymous("a"), anonymous("b")}, 16, anonymous("c"), core.Caller{ID: "l", Known: true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, base+`}`, download.Config{})
				request := func(c core.Caller, to io.Writer) error {
					return w.Download(t.Context(), "c", core.Principal{}, core.DownloadRequest{Params: []byte(`{}`), Caller: c},
						func(core.DownloadHead) (io.Writer, error) { return to, nil })
				}
				client, ended := make(unread), make(chan error, 48)
				for _, c := range tt.unread {
					for range 16 {
						go func() { ended <- request(c, client) }()
						synctest.Wait()
					}
				}
				for range 16*len(tt.unread) - tt.most {
					wantError(t, <-ended, core.CodeOverloaded, "too many concurrent downloads")
				}
				select {
				case err := <-ended:
					t.Errorf("less than %d were made: %v", tt.most, err)
				default:
				}
				wantError(t, request(tt.refused, io.Discard), core.CodeOverloaded, "too many concurrent downloads")
				if tt.another.ID != "" {
					if err := request(tt.another, io.Discard); err != nil {
						t.Errorf("one of another caller: %v", err)
					}
				}
				close(client)
				for range tt.most {
					<-ended
				}
				for _, c := range append(tt.unread, tt.refused) {
					if err := request(c, io.Discard); err != nil {
						t.Errorf("once they have ended: %v", err)
					}
				}
			})
		})
	}
}
