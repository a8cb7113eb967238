package check

import (
	"context"
	"time"

	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/upstream/lyric"
	"tutti/internal/upstream/song"
)

// source is what an upstream's client is asked for.
type source interface {
	// Organizations lists the organizations of a repository.
	Organizations(ctx context.Context) ([]string, error)
	// Close closes idle connections.
	Close()
}

var (
	_ source = (*song.Client)(nil)
	_ source = (*lyric.Client)(nil)
)

func newSource(r config.Repository, opts Options) (source, error) {
	agent, timeout := "tutti/"+opts.Version, min(r.Timeout, opts.Timeout)
	if r.Type == core.TypeLyric {
		return lyric.New(lyric.Config{
			URL: r.URL, Token: r.Token.Reveal(), Username: r.Username, Password: r.Password.Reveal(), Timeout: timeout,
			CategoryID: r.Lyric.CategoryID, ValidOnly: r.Lyric.ValidOnly, UserAgent: agent, Repository: r.Code,
		})
	}
	return song.New(song.Config{
		URL: r.URL, Token: r.Token.Reveal(), Username: r.Username, Password: r.Password.Reveal(), Timeout: timeout,
		States: r.Song.States, UserAgent: agent, Repository: r.Code,
	})
}

func repositoryProbe(r config.Repository, opts Options) probe {
	subject, host := "repository "+r.Code, hostOf(r.URL)
	return func(ctx context.Context) []Finding {
		from, err := newSource(r, opts)
		if err != nil {
			return []Finding{{subject, StatusFail, core.MessageOf(err), core.HintOf(err)}}
		}
		defer from.Close()
		begin := time.Now()
		organizations, err := from.Organizations(ctx)
		if err != nil {
			return []Finding{repositoryFault(subject, host, err)}
		}
		one, many := "study", "studies"
		if r.Type == core.TypeLyric {
			one, many = "organization", "organizations"
		}
		f := Finding{Subject: subject, Status: StatusOK}
		f.Message = host + " lists " + count(len(organizations), one, many) + " in " + time.Since(begin).Round(time.Millisecond).String()
		if len(organizations) == 0 {
			f.Status, f.Message = StatusWarn, host+" lists no "+many
			f.Hint = "nothing is indexed until there is one; check that the URL is the right repository's"
		}
		return []Finding{f}
	}
}

// repositoryFault names the cause of an error that has none of its own in words.
func repositoryFault(subject, host string, err error) Finding {
	f := Finding{subject, StatusFail, host + ": " + core.MessageOf(err), core.HintOf(err)}
	if f.Hint != "" {
		return f
	}
	reason, hint := unreached(err)
	f.Hint = hint
	if reason != "" && reason != core.MessageOf(err) {
		f.Message += ": " + reason
	}
	return f
}
