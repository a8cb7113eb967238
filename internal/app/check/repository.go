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

// source is the part of an upstream's client that a probe uses.
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

func repositoryProbe(r config.Repository, opts Options, look inspectStore) probe {
	subject, host := "repository "+r.Code, hostOf(r.URL)
	if r.Type == core.TypeLocal {
		return func(context.Context) []Finding { return []Finding{{subject, StatusOK, builtInState(look), ""}} }
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
			return []Finding{repositoryFailure(subject, host, r, err)}
		}
		one, many := "study", "studies"
		if r.Type == core.TypeLyric {
			one, many = "organization", "organizations"
		}
		f := Finding{Subject: subject, Status: StatusOK}
		f.Message = host + " lists " + count(len(organizations), one, many) + " in " + time.Since(begin).Round(time.Millisecond).String()
		if len(organizations) == 0 {
			f.Status, f.Message = StatusWarn, host+" lists no "+many
			f.Hint = "nothing is indexed until there is one; check that url is that of the right repository"
		}
		return []Finding{f}
	}
}

// builtInState describes the built-in repository. Problems of its store are findings of the store.
func builtInState(look inspectStore) string {
	switch r, err := look(); {
	case err != nil, r.Unreadable, r.Version > r.Newest:
		return "built in"
	case r.Studies == 0:
		return "built in, no studies yet"
	default:
		return "built in, with " + count(r.Studies, "study", "studies")
	}
}

// repositoryFailure returns the finding for an upstream that did not list its organizations.
func repositoryFailure(subject, host string, r config.Repository, err error) Finding {
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
		f.Hint = "check the repository's type, and that its url is that of the API and not of a web page: tutti requests " + path + " below it"
		return f
	}
	switch reason, hint := upstream.ConnectionFailure(err); {
	case hint == "", errors.Is(err, upstream.ErrTruncated):
		f.Message += ": " + reason
		f.Hint = "check the repository's log, and the log of a proxy in front of it"
	default:
		f.Message, f.Hint = host+" does not answer: "+reason, hint
	}
	return f
}

// statusHint returns a hint for an upstream that answered a request for path with an error status.
func statusHint(status int, path string) string {
	switch {
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return "wait until the repository has started or is less busy"
	case status >= http.StatusInternalServerError:
		return "check the repository's log, and the log of a proxy in front of it"
	case status == http.StatusRequestTimeout:
		return "check the proxy in front of the repository, which timed out"
	default:
		return "check the repository's url and type: tutti requests " + path + " below the url"
	}
}
