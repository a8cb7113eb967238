package check

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"tutti/internal/config"
	"tutti/internal/upstream"
)

const (
	subjectQueue = "queue"
	// queueFolder and indexFolder are the folders of the data folder, queueLock and indexLock the file that each has
	// locked while a tutti runs on it.
	queueFolder, queueLock = "queue", ".lock"
	indexFolder, indexLock = "index", "index.db"
	// streamsNeeded is how many streams tutti makes.
	streamsNeeded = 5
)

func queueProbe(cfg config.Config) probe {
	if cfg.Queue.URL == "" {
		return func(context.Context) []Finding {
			return []Finding{folder(subjectQueue, filepath.Join(cfg.DataDir, queueFolder), queueLock)}
		}
	}
	return func(ctx context.Context) []Finding { return natsServers(ctx, cfg.Queue) }
}

// natsServers looks at each server of a cluster. One that answers is enough to start.
func natsServers(ctx context.Context, q config.Queue) []Finding {
	key, err := readCredentials(q.CredentialsFile)
	if err != nil {
		return []Finding{{subjectQueue, StatusFail, "queue.credentialsFile: " + err.Error(), "give the .creds file of a NATS user"}}
	}
	var answered, silent []Finding
	for url := range strings.SplitSeq(q.URL, ",") {
		if url = strings.TrimSpace(url); url == "" {
			continue
		}
		server, err := lookAtNATS(ctx, url, key)
		refused, isRefused := errors.AsType[*natsError](err)
		switch {
		case err == nil:
			answered = append(answered, natsState(hostOf(url), server, q))
		case isRefused:
			answered = append(answered, natsRefused(hostOf(url), refused))
		case errors.Is(err, errNotNATS):
			silent = append(silent, Finding{
				subjectQueue, StatusFail, hostOf(url) + ": connected, but it does not speak NATS",
				"check the port: clients of NATS are served at 4222 unless it is set otherwise, and not at the port of its monitoring or of a proxy for HTTP or TLS",
			})
		default:
			reason, hint := upstream.ConnectionFailure(err)
			silent = append(silent, Finding{subjectQueue, StatusFail, hostOf(url) + " does not answer: " + reason, hint})
		}
	}
	for i := range silent {
		if len(answered) > 0 {
			silent[i].Status = StatusWarn
		}
	}
	return append(answered, silent...)
}

func natsRefused(host string, r *natsError) Finding {
	f := Finding{subjectQueue, StatusFail, host + ": " + r.Error(), ""}
	switch {
	case strings.Contains(r.text, "Authorization"), strings.Contains(r.text, "Authentication"):
		f.Message = host + " does not accept the credentials"
		f.Hint = "check queue.credentialsFile, or the user and password in queue.url"
	case strings.Contains(r.text, "Permissions Violation"):
		f.Message = host + " does not let this user use JetStream"
		f.Hint = "give the user publish rights on $JS.API.> and tutti.>, and subscribe rights on _INBOX.>"
	}
	return f
}

// natsState judges what a server says of itself and of the account.
func natsState(host string, s natsServer, q config.Queue) Finding {
	f := Finding{Subject: subjectQueue, Status: StatusOK}
	f.Message = fmt.Sprintf("nats-server %s at %s, JetStream is on, %s", s.Version, host, count(s.account.Streams, "stream", "streams"))
	limits := s.account.Limits
	fail := func(message, hint string) Finding {
		return Finding{subjectQueue, StatusFail, fmt.Sprintf("nats-server %s at %s: %s", s.Version, host, message), hint}
	}
	switch {
	case !s.JetStream:
		return fail("JetStream is off", "start nats-server with -js, or add jetstream {} to its configuration")
	case s.account.Error != nil:
		return fail("this account cannot use JetStream: "+s.account.Error.Description, "enable JetStream for the account of this user")
	case q.Replicas > 1 && s.Cluster == "":
		return fail(fmt.Sprintf("it is in no cluster, but queue.replicas is %d", q.Replicas), "set queue.replicas to 1, or queue.url to a cluster's")
	case limits.MaxStreams > 0 && limits.MaxStreams < streamsNeeded:
		return fail(fmt.Sprintf("the account may have %s, tutti needs %d", count(limits.MaxStreams, "stream", "streams"), streamsNeeded),
			"raise the account's limit of streams")
	case limits.MaxStorage > 0 && limits.MaxStorage < noSpace:
		return fail(fmt.Sprintf("the account may keep %s on disk", bytesText(uint64(limits.MaxStorage))), "raise the account's limit of storage")
	case limits.MaxStorage > 0 && limits.MaxStorage < littleSpace:
		f.Status = StatusWarn
		f.Message += fmt.Sprintf(", but the account may keep %s on disk, which is little", bytesText(uint64(limits.MaxStorage)))
		f.Hint = "raise the account's limit of storage before much is indexed"
	}
	return f
}
