package catalogues

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"tutti/cmd/tutti/internal/client"
	"tutti/cmd/tutti/internal/command"
	"tutti/internal/base/printable"
	"tutti/internal/core"
)

// stdinName is the argument that stands for stdin.
const stdinName = "-"

func schemasRegisterCommand(r *command.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "register <file>…",
		Short: "Register analysis types",
		Long: "Register an analysis type, or the next version of one, from each file; - is stdin. A file holds one JSON object:\n\n" +
			"  {\"name\": \"sequencingRead\",\n" +
			"   \"schema\": {\"type\": \"object\", \"required\": [\"experiment\"], \"properties\": {\"experiment\": {\"type\": \"object\"}}},\n" +
			"   \"options\": {\"fileTypes\": [\"BAM\", \"CRAM\"], \"externalValidations\": []}}\n\n" +
			"Omitted options are taken from the previous version. Errors in a file are written to stderr, one line\n" +
			"each: FILE: POINTER: MESSAGE, where POINTER is a JSON pointer into the file. The other files are still registered,\n" +
			"and the exit code is 1.",
		Example: "  tutti schemas register sequencingRead.json variantCall.json\n" +
			"  jq '{name: \"sequencingRead\", schema: .}' schema.json | tutti schemas register -",
		Args: command.Arguments(math.MaxInt, "name files with one registration each, or - for stdin"),
		RunE: func(cmd *cobra.Command, files []string) error {
			if first := slices.Index(files, stdinName); first >= 0 && slices.Contains(files[first+1:], stdinName) {
				return command.Usage(cmd, "stdin (-) can be given only once")
			}
			c, err := r.Client(cmd)
			if err != nil {
				return err
			}
			failed := false
			for _, file := range files {
				if err := register(cmd, c, r, file); err != nil {
					if cmd.Context().Err() != nil {
						return err
					}
					failed = true
					printFileError(cmd.ErrOrStderr(), file, err)
				}
			}
			if failed {
				return &command.ExitError{Code: command.ExitFailed}
			}
			return nil
		},
	}
}

func register(cmd *cobra.Command, c *client.Client, r *command.Remote, file string) error {
	body, err := readInput(cmd, file)
	if err != nil {
		// Its text repeats the file name.
		if of, ok := errors.AsType[*fs.PathError](err); ok {
			err = of.Err
		}
		return core.WrapError(core.CodeInvalid, "cannot be read", err)
	}
	t, err := c.RegisterAnalysisType(cmd.Context(), body)
	if err != nil {
		return err
	}
	if r.JSON() {
		return command.PrintJSON(cmd.OutOrStdout(), t.Raw)
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), printable.Line(fmt.Sprintf("registered %s, version %d", t.Name, t.Version)))
	return err
}

func readInput(cmd *cobra.Command, file string) ([]byte, error) {
	if file == stdinName {
		return io.ReadAll(cmd.InOrStdin())
	}
	return os.ReadFile(file)
}

// printFileError writes the error of a file to stderr, followed by a line for each violation that the server reported.
func printFileError(stderr io.Writer, file string, err error) {
	command.PrintError(stderr, fmt.Errorf("%s: %w", file, err))
	rejected, ok := errors.AsType[*core.Error](err)
	if !ok {
		return
	}
	for _, v := range rejected.Violations {
		line := file + ": "
		if v.Pointer != "" {
			line += v.Pointer + ": "
		}
		_, _ = fmt.Fprintln(stderr, printable.Line(line+v.Message))
	}
}
