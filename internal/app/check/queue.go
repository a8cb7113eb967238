package check

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tutti/internal/app/settings"
	"tutti/internal/base/tlsconfig"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/queue"
	"tutti/internal/queue/natsconn"
)

const (
	subjectQueue = "queue"
	// queueLock and indexLock are the files in the folders of the embedded queue and index that a running tutti locks.
	queueLock, indexLock = ".lock", "index.db"
)

func queueProbe(cfg config.Config) probe {
	if cfg.Queue.URL == "" {
		return func(context.Context) []Finding {
			return []Finding{folder(subjectQueue, settings.QueueDir(cfg), queueLock)}
		}
	}
	return func(ctx context.Context) []Finding { return natsServers(ctx, cfg.Queue) }
}

// natsServers probes each server of a cluster. tutti starts when one of them answers.
func natsServers(ctx context.Context, q config.Queue) []Finding {
	servers, err := queue.Probe(ctx, queue.Config{URL: q.URL.Reveal(), Security: settings.QueueSecurity(q), Replicas: q.Replicas})
	if err != nil {
		return []Finding{{subjectQueue, StatusFail, core.MessageOf(err), core.HintOf(err)}}
	}
	var answered, silent []Finding
	for _, s := range servers {
		if code := core.CodeOf(s.Err); code == core.CodeUnavailable || code == core.CodeUpstream {
			silent = append(silent, silentServer(s))
		} else {
			answered = append(answered, natsState(s))
		}
	}
	for i := range silent {
		if len(answered) > 0 {
			silent[i].Status = StatusWarn
		}
	}
	answered = append(answered, storage(servers)...)
	return append(append(answered, silent...), monitoredServers(ctx, q, servers)...)
}

// storage returns whether the streams store messages; one finding for what several servers of a cluster say.
func storage(servers []queue.ServerProbe) (found []Finding) {
	for _, s := range servers {
		var f Finding
		switch {
		case s.Err != nil:
			continue
		case s.Unstored != nil:
			f = Finding{subjectQueue, StatusFail, core.MessageOf(s.Unstored), core.HintOf(s.Unstored)}
		case s.Unprobed != nil:
			reason, hint := "the streams could not be checked", "grant the user the permissions for NATS that deploy/docs/engines.md lists"
			if errors.Is(s.Unprobed, context.DeadlineExceeded) {
				reason, hint = "the streams did not answer in time", "check nats-server and its log"
			}
			f = Finding{subjectQueue, StatusWarn, "could not check whether " + hostOf(s.URL) + " stores messages: " + reason, hint}
		default:
			continue
		}
		if !slices.Contains(found, f) {
			found = append(found, f)
		}
	}
	return found
}

// monitoredServers returns what the servers of a queue report to their operator: streams that store nothing, and of a server that has the only
// copy of the streams whether it syncs each write.
func monitoredServers(ctx context.Context, q config.Queue, servers []queue.ServerProbe) []Finding {
	reports, failed := queue.Monitor(ctx, queue.Config{MonitoringURL: q.MonitoringURL.Reveal(), Security: settings.QueueSecurity(q)})
	var found []Finding
	for _, err := range failed {
		found = append(found, Finding{subjectQueue, StatusWarn, "queue.monitoringUrl: " + core.MessageOf(err), core.HintOf(err)})
	}
	for _, r := range reports {
		for _, frozen := range r.Frozen {
			found = append(found, Finding{
				subjectQueue, StatusFail, "nats-server at " + r.Name + " stores nothing in a stream since an error: " + frozen,
				"check its disk, and restart this nats-server: it stores in that stream again only then",
			})
		}
	}
	for _, s := range servers {
		if s.Err != nil || q.Replicas > 1 || q.Replicas == 0 && s.Cluster != "" {
			continue
		}
		at := slices.IndexFunc(reports, func(r natsconn.Monitored) bool { return r.ID == s.ID })
		const always = "sync_interval: always in the block jetstream of nats-server's configuration"
		switch name := "nats-server at " + hostOf(s.URL); {
		case at < 0:
			found = append(found, Finding{
				subjectQueue, StatusWarn, "could not check whether " + name + " syncs every write; it has the only copy of the queue",
				"set " + always + ", and queue.monitoringUrl to have it checked",
			})
		case reports[at].SyncAlways:
			found = append(found, Finding{subjectQueue, StatusOK, name + " syncs every write", ""})
		default:
			found = append(found, Finding{
				subjectQueue, StatusWarn,
				fmt.Sprintf("%s syncs once in %s; requests that it confirmed since are lost if its machine fails, as it has their only copy", name, reports[at].SyncInterval),
				"set " + always + ", or use a cluster of three servers",
			})
		}
	}
	return found
}

// silentServer returns the finding for a server that does not answer, or not as a NATS server does.
func silentServer(s queue.ServerProbe) Finding {
	f := Finding{subjectQueue, StatusFail, hostOf(s.URL) + " " + core.MessageOf(s.Err), core.HintOf(s.Err)}
	if f.Hint == "" {
		reason, hint := tlsconfig.Failure(s.Err)
		f.Message, f.Hint = f.Message+": "+reason, hint
	}
	return f
}

// natsState returns the finding for a server that answered.
func natsState(s queue.ServerProbe) Finding {
	name := hostOf(s.URL)
	if s.Version != "" {
		name = "nats-server " + s.Version + " at " + name
	}
	space := ""
	if s.MaxBytes > 0 && s.MaxBytes < lowSpace {
		space = bytesText(s.MaxBytes)
	}
	switch {
	case s.Err != nil:
		return Finding{subjectQueue, StatusFail, name + " " + core.MessageOf(s.Err), core.HintOf(s.Err)}
	case space != "" && s.MaxBytes < minSpace:
		return Finding{subjectQueue, StatusFail, name + " lets the account keep only " + space + " on disk", "raise the account's storage limit"}
	}
	f := Finding{Subject: subjectQueue, Status: StatusOK}
	f.Message = fmt.Sprintf("%s, JetStream is on, %s", name, count(s.Streams, "stream", "streams"))
	if space != "" {
		f.Status, f.Hint = StatusWarn, "raise the account's storage limit before you index much"
		f.Message += ", but the account may keep only " + space + " on disk"
	}
	return f
}
