// Package records has the commands that act on records: index, jobs, dead-letters, why and mapping.
package records

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"tutti/cmd/tutti/internal/client"
	"tutti/cmd/tutti/internal/client/display"
	"tutti/cmd/tutti/internal/command"
	"tutti/internal/base/printable"
	"tutti/internal/core"
)

// indexFlags are the flags of tutti index.
type indexFlags struct {
	wait, force, rebuild, remove bool
	rollback, dropPrevious       bool
	difference                   bool
	// ids is the file of a list of ids, - for stdin, "" for none.
	ids string
	// timeout is the longest wait; 0 means no limit.
	timeout time.Duration
}

// check returns why the flags do not fit each other or the target, or "" if they do.
func (f indexFlags) check(target []string) string {
	record := len(target) == 3
	switch {
	case f.remove && !record:
		return "--remove requires one record: pass the organization and the id"
	case f.wait && record:
		return "--wait requires a job, but indexing one record creates none"
	case f.timeout < 0:
		return "--wait-timeout must not be negative"
	case f.timeout > 0 && !f.wait:
		return "--wait-timeout requires --wait"
	case f.force && record:
		return "--force disables the prune guard of a run; indexing one record is not a run"
	case f.ids != "" && (record || f.force || f.difference || f.rebuild || f.rollback || f.dropPrevious):
		return "--ids applies to a repository or an organization, and cannot be combined with --force, --difference, --rebuild, --rollback or --drop-previous"
	default:
		return f.checkRebuild(target)
	}
}

// checkRebuild is check for the flags of rebuilds and comparisons.
func (f indexFlags) checkRebuild(target []string) string {
	switch {
	case f.difference && len(target) == 3:
		return "--difference compares the records of a run; indexing one record is not a run"
	case f.difference && (f.rebuild || f.rollback || f.dropPrevious):
		return "--difference cannot be combined with --rebuild, --rollback or --drop-previous"
	case (f.rebuild || f.rollback || f.dropPrevious) && len(target) > 1:
		return "--rebuild, --rollback and --drop-previous apply to a whole repository only"
	case f.rollback && (f.force || f.rebuild || f.dropPrevious), f.dropPrevious && (f.force || f.rebuild || f.wait):
		return "--rollback and --drop-previous cannot be combined with --force, --rebuild or each other, nor --drop-previous with --wait"
	default:
		return ""
	}
}

// IndexCommand returns tutti index.
func IndexCommand() *cobra.Command {
	var r command.Remote
	var f indexFlags
	cmd := &cobra.Command{
		Use:   "index <repository> [organization] [id]",
		Short: "Index a repository, one of its organizations, a list of records, or one record",
		Long: "Ask a server to index a repository, one of its organizations (Song's study, Lyric's organization), or one record\n" +
			"(Song's analysisId, Lyric's systemId). The server answers when the request is stored. For a repository or an\n" +
			"organization it creates a job, which runs independently of this command.\n\n" +
			"With --wait the command waits until the job has ended. It shows progress on stderr, on a terminal as a bar for each\n" +
			"organization, otherwise as a line for each change and every few seconds, and the result on stdout. If the repository is\n" +
			"paused, the job waits and the reason is printed at once. Ctrl-c and --wait-timeout end the wait, not the job.\n\n" +
			"A record that its repository no longer has, or has in a state that is not indexed, is removed. At its end a run\n" +
			"removes documents that no longer exist in the repository, or that its list shows as not valid. If that would remove\n" +
			"more than a fifth of them, none is removed and the job ends partial, unless --force is given.\n\n" +
			"With --difference the run compares each record with its document, and writes only those that are missing or different.\n\n" +
			"With --rebuild a second index is filled with the current mapping, while changes go to both, and then replaces the first.\n" +
			"The first is kept: --rollback returns to it, and indexes what changed since; --drop-previous deletes it.\n\n" +
			"With --ids the records of a file are indexed as one job: with an organization an id a line, without one an organization,\n" +
			"a tab and an id, or an object {\"organization\", \"id\"} a line. If a line is not valid, nothing is requested. With --wait the\n" +
			"ids that are not in the index are listed at the end, with the reason; tutti jobs ids lists all.\n\n" +
			"Exit code: 0 when the request was accepted, with --wait when the job succeeded; 2 when the job ended partial,\n" +
			"for example because records were rejected; 1 when it failed or was cancelled, and on every error, including\n" +
			"wrong usage, --wait-timeout and ctrl-c.",
		Example: "  tutti index song.collab --wait\n" +
			"  tutti index song.collab --wait --wait-timeout 30m\n" +
			"  tutti index song.collab STUDY-1\n" +
			"  tutti index song.collab STUDY-1 4fd5a3d0-8a6f-4f2e-a0d6-1c3c7f1d3a5e\n" +
			"  tutti index song.collab STUDY-1 4fd5a3d0-8a6f-4f2e-a0d6-1c3c7f1d3a5e --remove\n" +
			"  tutti index song.collab STUDY-1 --ids ids.txt --wait\n" +
			"  tutti index song.collab --wait --output json | jq .totals",
		Args:              command.Arguments(3, "name a repository, optionally an organization and an id"),
		ValidArgsFunction: command.CompleteIDs(&r, 1, repositoryCodes),
		RunE: func(cmd *cobra.Command, target []string) error {
			if problem := f.check(target); problem != "" {
				return command.Usage(cmd, problem)
			}
			c, err := r.Client(cmd)
			if err != nil {
				return err
			}
			if f.ids != "" {
				return indexList(cmd, c, &r, f, target)
			}
			return index(cmd, c, &r, f, target)
		},
	}
	r.AddFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&f.wait, "wait", false, "wait until the job has ended, and show its progress; not with an id")
	flags.DurationVar(&f.timeout, "wait-timeout", 0,
		"with --wait, exit 1 after this `duration` if the job has not ended; 0 waits without limit")
	flags.BoolVar(&f.force, "force", false, "remove what the repository no longer has, even more than a fifth of the documents; not with an id")
	flags.BoolVar(&f.rebuild, "rebuild", false, "fill a new index and switch the alias to it; whole repositories only")
	flags.BoolVar(&f.difference, "difference", false, "write only the records whose documents are missing or different; not with an id")
	flags.BoolVar(&f.rollback, "rollback", false, "return to the index before the last rebuild; whole repositories only")
	flags.BoolVar(&f.dropPrevious, "drop-previous", false, "delete the index before the last rebuild; whole repositories only")
	flags.StringVar(&f.ids, "ids", "", "index the records of this `file`, - for stdin; not with an id")
	flags.BoolVar(&f.remove, "remove", false, "remove the document of one record; needs an id")
	return cmd
}

func dropPrevious(ctx context.Context, cmd *cobra.Command, c *client.Client, r *command.Remote, repository string) error {
	if err := c.DropPrevious(ctx, repository); err != nil {
		return err
	}
	line, err := json.Marshal(map[string]any{"repository": repository, "previousDropped": true})
	return r.Print(cmd, line, err, func() error {
		_, err := fmt.Fprintln(cmd.OutOrStdout(), printable.Line("deleted the index of "+repository+" from before its last rebuild"))
		return err
	})
}

func index(cmd *cobra.Command, c *client.Client, r *command.Remote, f indexFlags, target []string) error {
	ctx, cancel := limited(cmd.Context(), f.timeout)
	defer cancel()
	if f.dropPrevious {
		return dropPrevious(ctx, cmd, c, r, target[0])
	}
	accepted, err := trigger(ctx, c, f, target)
	if err != nil {
		return notAccepted(ctx, cmd, f.timeout, err)
	}
	if f.wait && accepted.JobID != "" {
		return waitForJob(ctx, cmd, c, r, accepted.JobID, f.timeout)
	}
	out := cmd.OutOrStdout()
	if r.JSON() {
		return command.PrintJSON(out, accepted.Raw)
	}
	facts := []string{"accepted", describeRequest(f, target), "index", accepted.IndexName, "request", accepted.RequestID, "job", accepted.JobID}
	if accepted.JobID != "" {
		facts = append(facts, "follow", "tutti jobs show "+accepted.JobID+" --watch")
	}
	return display.KeyValues(out, facts...)
}

// limited returns ctx with the timeout of a wait, 0 for none.
func limited(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout > 0 {
		return context.WithTimeout(ctx, timeout)
	}
	return context.WithCancel(ctx)
}

// notAccepted returns the error of a trigger, and whether it may have created a job.
func notAccepted(ctx context.Context, cmd *cobra.Command, timeout time.Duration, err error) error {
	switch {
	case cmd.Context().Err() != nil:
		return fmt.Errorf("interrupted before the server answered; tutti jobs shows whether it created a job: %w", err)
	case ctx.Err() != nil:
		return fmt.Errorf("the server did not answer within %s; tutti jobs shows whether it created a job: %w", display.Duration(timeout), err)
	default:
		return err
	}
}

func trigger(ctx context.Context, c *client.Client, f indexFlags, target []string) (client.Accepted, error) {
	if f.remove {
		return c.RemoveRecord(ctx, target[0], target[1], target[2])
	}
	if f.rollback {
		return c.Rollback(ctx, target[0])
	}
	return c.Index(ctx, client.RunOptions{Force: f.force, Rebuild: f.rebuild, Difference: f.difference}, target...)
}

// describeRequest describes the request that was accepted.
func describeRequest(f indexFlags, target []string) string {
	switch {
	case f.remove:
		return "removal of record " + target[2] + " of " + target[0] + " / " + target[1]
	case len(target) == 3:
		return "record " + target[2] + " of " + target[0] + " / " + target[1]
	case len(target) == 2:
		return "organization " + target[1] + " of " + target[0]
	default:
		return "repository " + target[0]
	}
}

// waitForJob shows a job's progress until it ends or ctx does, and then its result. ctx must end after timeout unless that is 0. The
// returned error carries the exit code.
func waitForJob(ctx context.Context, cmd *cobra.Command, c *client.Client, r *command.Remote, id string, timeout time.Duration) error {
	progress, cfg := command.ProgressOf(cmd, r)
	job, err := display.Watch(ctx, c, id, progress, cfg)
	if err != nil && ctx.Err() != nil {
		e := &core.Error{
			Code: core.CodeUnavailable, Message: "stopped waiting; job " + id + " is still running",
			Hint: "tutti jobs show " + id + " --watch follows it, tutti jobs cancel " + id + " ends it",
		}
		if cmd.Context().Err() == nil {
			e.Message = "job " + id + " has not ended after " + display.Duration(timeout) + "; " + lastState(job)
			e.Hint = "the job continues; " + e.Hint
		}
		return e
	}
	if err != nil {
		return err
	}
	if r.JSON() {
		err = command.PrintJSON(cmd.OutOrStdout(), job.Raw)
	} else {
		err = display.Summary(cmd.OutOrStdout(), job)
		if err == nil && job.Scope == core.ScopeIDs {
			err = printIDs(ctx, cmd, c, job.ID, false)
		}
	}
	if err != nil {
		return err
	}
	return jobError(job, r.JSON())
}

// lastState describes the last received state of a job that has not ended.
func lastState(job client.Job) string {
	switch {
	case job.State == "":
		return "its state was not received"
	case job.Paused != "":
		return "its last state is " + string(job.State) + ", paused: " + job.Paused
	default:
		return "its last state is " + string(job.State)
	}
}

// jobError returns the error that carries the exit code of a job that has ended, nil if it succeeded. It has a message only if
// verbose.
func jobError(job client.Job, verbose bool) error {
	if job.State == core.JobSucceeded {
		return nil
	}
	e := &command.ExitError{Code: command.ExitFailed}
	if job.State == core.JobPartial {
		e.Code = command.ExitPartial
	}
	if verbose {
		text := "job " + job.ID + " ended " + string(job.State)
		if job.Error != nil {
			text += ", " + display.ErrorText(job.Error)
		}
		e.Err = errors.New(text)
	}
	return e
}
