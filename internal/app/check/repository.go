package check

import (
	"context"
	"errors"
	"net/http"
	"time"

	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/upstream"
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

func repositoryProbe(r config.Repository, opts Options, look looked) probe {
	subject, host := "repository "+r.Code, hostOf(r.URL)
	if r.Type == core.TypeLocal {
		return func(context.Context) []Finding { return []Finding{{subject, StatusOK, builtIn(look), ""}} }
	}
	return func(ctx context.Context) []Finding {
		from, err := newSource(r, opts)
		if err != nil {
			return []Finding{{subject, StatusFail, core.MessageOf(err), core.HintOf(err)}}
		}
		defer from.Close()
		begin := time.Now()
		organizations, err := from.Organizations(ctx)
		if err != nil {
			return []Finding{repositoryFault(subject, host, r, err)}
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

// builtIn tells what is in the built-in repository. There is nothing to dial; what is wrong with its store is told there.
func builtIn(look looked) string {
	switch r, err := look(); {
	case err != nil, r.Unreadable, r.Version > r.Newest:
		return "built in"
	case r.Studies == 0:
		return "built in, without a study yet"
	default:
		return "built in, with " + count(r.Studies, "study", "studies")
	}
}

// repositoryFault puts in words why an upstream did not list its organizations, and how to mend that.
func repositoryFault(subject, host string, r config.Repository, err error) Finding {
	f := Finding{subject, StatusFail, host + ": " + core.MessageOf(err), core.HintOf(err)}
	if f.Hint != "" {
		return f
	}
	path := "studies/all"
	if r.Type == core.TypeLyric {
		path = "category/" + r.Lyric.CategoryID
	}
	if status, ok := errors.AsType[*upstream.StatusError](err); ok {
		f.Hint = statusHint(status.Status, path)
		return f
	}
	if errors.Is(err, upstream.ErrFormat) || errors.Is(err, upstream.ErrTooLarge) {
		f.Hint = "check the repository's type, and that its url is that of the API and not of a web page: " + path + " is asked for below it"
		return f
	}
	switch reason, hint := upstream.ConnectionFailure(err); hint {
	case "":
		f.Message += ": " + reason
		f.Hint = "look at the repository's log, and at that of a proxy before it"
	default:
		f.Message, f.Hint = host+" does not answer: "+reason, hint
	}
	return f
}

// statusHint says how to mend that an upstream answered a question for path with a status that is no success.
func statusHint(status int, path string) string {
	switch {
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return "wait until the repository has started, or has less to do"
	case status >= http.StatusInternalServerError:
		return "look at the repository's log, and at that of a proxy before it"
	case status == http.StatusRequestTimeout:
		return "look at a proxy before the repository, which gave up"
	default:
		return "check the repository's url and type: " + path + " is asked for below the url"
	}
}
