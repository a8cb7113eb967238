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
	// queueFolder and indexFolder are subfolders of the data folder; queueLock and indexLock are the files in them that a
	// running tutti locks.
	queueFolder, queueLock = "queue", ".lock"
	indexFolder, indexLock = "index", "index.db"
	// streamsNeeded is how many streams tutti creates.
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

// natsServers probes each server of a cluster. tutti starts when one of them answers.
func natsServers(ctx context.Context, q config.Queue) []Finding {
	key, err := readCredentials(q.CredentialsFile)
	if err != nil {
		return []Finding{{subjectQueue, StatusFail, "queue.credentialsFile: " + err.Error(), "set it to the .creds file of a NATS user"}}
	}
	var answered, silent []Finding
	for url := range strings.SplitSeq(q.URL, ",") {
		if url = strings.TrimSpace(url); url == "" {
			continue
		}
		server, err := inspectNATS(ctx, url, key)
		refused, isRefused := errors.AsType[*natsError](err)
		switch {
		case err == nil:
			answered = append(answered, natsState(hostOf(url), server, q))
		case isRefused:
			answered = append(answered, natsFailure(hostOf(url), refused))
		case errors.Is(err, errNotNATS):
			silent = append(silent, Finding{
				subjectQueue, StatusFail, hostOf(url) + ": connected, but it does not speak NATS",
				"check the port: NATS serves clients at port 4222 by default; its monitoring port and HTTP or TLS proxies do not work",
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

func natsFailure(host string, r *natsError) Finding {
	f := Finding{subjectQueue, StatusFail, host + ": " + r.Error(), ""}
	switch {
	case strings.Contains(r.text, "Authorization"), strings.Contains(r.text, "Authentication"):
		f.Message = host + " does not accept the credentials"
		f.Hint = "check queue.credentialsFile, or the user and password in queue.url"
	case strings.Contains(r.text, "Permissions Violation"):
		f.Message = host + " does not let this user use JetStream"
		f.Hint = "grant the user publish permission on $JS.API.> and tutti.>, and subscribe permission on _INBOX.>"
	}
	return f
}

// natsState returns the finding for a server that answered.
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
		return fail(fmt.Sprintf("it is not in a cluster, but queue.replicas is %d", q.Replicas), "set queue.replicas to 1, or queue.url to a cluster's")
	case limits.MaxStreams > 0 && limits.MaxStreams < streamsNeeded:
		return fail(fmt.Sprintf("the account may have %s; tutti needs %d", count(limits.MaxStreams, "stream", "streams"), streamsNeeded),
			"raise the account's stream limit")
	case limits.MaxStorage > 0 && limits.MaxStorage < minSpace:
		return fail(fmt.Sprintf("the account may keep %s on disk", bytesText(uint64(limits.MaxStorage))), "raise the account's storage limit")
	case limits.MaxStorage > 0 && limits.MaxStorage < lowSpace:
		f.Status = StatusWarn
		f.Message += fmt.Sprintf(", but the account may keep only %s on disk", bytesText(uint64(limits.MaxStorage)))
		f.Hint = "raise the account's storage limit before you index much"
	}
	return f
}
