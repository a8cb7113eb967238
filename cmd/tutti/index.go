package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"tutti/internal/client"
	"tutti/internal/client/display"
	"tutti/internal/core"
)

// indexFlags are what tutti index can be asked for beside its target.
type indexFlags struct {
	wait, force, rebuild, remove bool
	// timeout ends the waiting; 0 for never.
	timeout time.Duration
}

// check names what the flags and the target cannot mean together; empty when they can.
func (f indexFlags) check(target []string) string {
	record := len(target) == 3
	switch {
	case f.remove && !record:
		return "--remove takes one record: give the organization and the id"
	case f.wait && record:
		return "--wait needs a job, and one record has none"
	case f.timeout < 0:
		return "--wait-timeout must not be negative"
	case f.timeout > 0 && !f.wait:
		return "--wait-timeout needs --wait"
	case f.force && record:
		return "--force lifts the prune guard of a run, and one record has none"
	case f.rebuild && len(target) > 1:
		return "--rebuild applies to a whole repository"
	default:
		return ""
	}
}

func indexCommand() *cobra.Command {
	var r remote
	var f indexFlags
	cmd := &cobra.Command{
		Use:   "index <repository> [organization] [id]",
		Short: "Index a repository, one of its organizations, or one record",
		Long: "Ask a server to index a repository, one of its organizations (Song's study, Lyric's organization), or one record\n" +
			"(Song's analysisId, Lyric's systemId). The server answers when the request is stored; a repository or an\n" +
			"organization gives a job, which goes on whatever happens to this command.\n\n" +
			"With --wait the command stays until the job has ended. It shows progress on stderr, a bar for each organization on\n" +
			"a terminal, a line for each change and every few seconds elsewhere, and the result on stdout. A job of a repository that\n" +
			"is paused waits: the reason is shown at once. Ctrl-c and --wait-timeout end the waiting, not the job.\n\n" +
			"A record that its repository no longer has, or not in a state that is indexed, is removed. A run ends by looking\n" +
			"for documents that it has not seen and removes those that are gone; if that were more than a fifth of them, none is\n" +
			"removed and the job ends partial, unless --force is given.\n\n" +
			"Exit code: 0 when the request was accepted, with --wait when the job succeeded; 2 when the job ended partial,\n" +
			"also when records were rejected; 1 when it failed or was cancelled, and on every error, wrong usage, --wait-timeout and ctrl-c included.",
		Example: "  tutti index song.collab --wait\n" +
			"  tutti index song.collab --wait --wait-timeout 30m\n" +
			"  tutti index song.collab STUDY-1\n" +
			"  tutti index song.collab STUDY-1 4fd5a3d0-8a6f-4f2e-a0d6-1c3c7f1d3a5e\n" +
			"  tutti index song.collab STUDY-1 4fd5a3d0-8a6f-4f2e-a0d6-1c3c7f1d3a5e --remove\n" +
			"  tutti index song.collab --wait --output json | jq .totals",
		Args:              arguments(3, "give a repository, and for less of it an organization and an id"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, target []string) error {
			if fault := f.check(target); fault != "" {
				return usage(cmd, fault)
			}
			c, err := r.client()
			if err != nil {
				return err
			}
			return index(cmd, c, &r, f, target)
		},
	}
	r.addFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&f.wait, "wait", false, "wait until the job has ended, and show its progress; not with an id")
	flags.DurationVar(&f.timeout, "wait-timeout", 0,
		"with --wait, exit 1 after this `duration` if the job has not ended; 0 waits as long as it takes")
	flags.BoolVar(&f.force, "force", false, "remove what the repository no longer has, however much it is; not with an id")
	flags.BoolVar(&f.rebuild, "rebuild", false, "fill a new index and swap; whole repositories only")
	flags.BoolVar(&f.remove, "remove", false, "remove the document of one record; needs an id")
	return cmd
}

func index(cmd *cobra.Command, c *client.Client, r *remote, f indexFlags, target []string) error {
	ctx := cmd.Context()
	if f.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.timeout)
		defer cancel()
	}
	accepted, err := trigger(ctx, c, f, target)
	if err != nil && ctx.Err() != nil && cmd.Context().Err() == nil {
		return fmt.Errorf("the server did not answer within %s; tutti jobs shows whether it has a job: %w", display.Duration(f.timeout), err)
	}
	if err != nil && cmd.Context().Err() != nil {
		return fmt.Errorf("stopped before the server had answered; tutti jobs shows whether it has a job: %w", err)
	}
	if err != nil {
		return err
	}
	if f.wait && accepted.JobID != "" {
		return await(ctx, cmd, c, r, accepted.JobID, f.timeout)
	}
	out := cmd.OutOrStdout()
	if r.json() {
		return printJSON(out, accepted.Raw)
	}
	facts := []string{"accepted", what(f, target), "index", accepted.IndexName, "request", accepted.RequestID, "job", accepted.JobID}
	if accepted.JobID != "" {
		facts = append(facts, "follow", "tutti jobs show "+accepted.JobID+" --watch")
	}
	return display.KeyValues(out, facts...)
}

func trigger(ctx context.Context, c *client.Client, f indexFlags, target []string) (client.Accepted, error) {
	options := client.RunOptions{Force: f.force, Rebuild: f.rebuild}
	switch {
	case len(target) == 1:
		return c.IndexRepository(ctx, target[0], options)
	case len(target) == 2:
		return c.IndexOrganization(ctx, target[0], target[1], options)
	case f.remove:
		return c.RemoveRecord(ctx, target[0], target[1], target[2])
	default:
		return c.IndexRecord(ctx, target[0], target[1], target[2])
	}
}

// what says in words what was asked for.
func what(f indexFlags, target []string) string {
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

// await waits for a job's end until ctx ends, which it does after timeout unless that is 0, shows its progress and how it ended, and returns the
// error that carries the exit code.
func await(ctx context.Context, cmd *cobra.Command, c *client.Client, r *remote, id string, timeout time.Duration) error {
	progress, cfg := progressOf(cmd, r)
	job, err := display.Watch(ctx, c, id, progress, cfg)
	if err != nil && ctx.Err() != nil {
		e := &core.Error{
			Code: core.CodeUnavailable, Message: "stopped waiting; job " + id + " goes on",
			Hint: "tutti jobs show " + id + " --watch follows it, tutti jobs cancel " + id + " ends it",
		}
		if cmd.Context().Err() == nil {
			e.Message = "job " + id + " has not ended after " + display.Duration(timeout) + "; " + lastState(job)
			e.Hint = "the job goes on; " + e.Hint
		}
		return e
	}
	if err != nil {
		return err
	}
	if r.json() {
		err = printJSON(cmd.OutOrStdout(), job.Raw)
	} else {
		err = display.Summary(cmd.OutOrStdout(), job)
	}
	if err != nil {
		return err
	}
	return outcome(job, r.json())
}

// lastState says what was last received of a job that has not ended.
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

// outcome returns the error that carries the exit code of a job that has ended. It has a text only where nothing else has
// said in words how the job ended.
func outcome(job client.Job, speak bool) error {
	if job.State == core.JobSucceeded {
		return nil
	}
	e := &exitError{code: exitFailed}
	if job.State == core.JobPartial {
		e.code = exitPartial
	}
	if speak {
		text := "job " + job.ID + " ended " + string(job.State)
		if job.Error != nil {
			text += ", " + display.ErrorText(job.Error)
		}
		e.err = errors.New(text)
	}
	return e
}
