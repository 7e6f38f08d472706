package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/whippet-mq/whippet/tools/client"
)

// Environment is what a run of the command may touch.
type Environment struct {
	Version  string
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	Contexts string // path of the contexts file
}

// System is the environment of the process.
func System(version string) Environment {
	return Environment{
		Version: version, In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Contexts: contextsPath(os.Getenv),
	}
}

// Run performs one command line and returns the exit code.
func Run(ctx context.Context, e Environment, args []string) int {
	a := &app{Environment: e}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(e.In)
	root.SetOut(e.Out)
	root.SetErr(e.Err)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(e.Err, "whippet:", explain(err))
	}
	return exitCode(err)
}

// app is one run: its environment and the global flags.
type app struct {
	Environment
	context  string
	address  string
	username string
	password string
	token    string
	tls      bool
	ca       string
	insecure bool
	timeout  time.Duration
	output   string
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use: "whippet", Short: "Client and operator tool of the Whippet message broker", Version: a.Version,
		SilenceUsage: true, SilenceErrors: true,
		Long: "Streams, topics, groups, users and users' tokens are named by their name or number: orders, 3, or name:3 for a\n" +
			"name made of digits.\n\nExit codes: 0 done, 1 failed or refused, 2 used wrongly, 3 no connection, 4 not found, 5 not allowed.",
	}
	f := root.PersistentFlags()
	f.StringVar(&a.Contexts, "config", a.Contexts, "file of contexts")
	f.StringVar(&a.context, "context", "", "context to use (default: the current one)")
	f.StringVar(&a.address, "address", "", "host:port of the server (default 127.0.0.1:8090)")
	f.StringVarP(&a.username, "username", "u", "", "user to log in as (default iggy)")
	f.StringVarP(&a.password, "password", "p", "", "its password; asked for on a terminal when missing")
	f.StringVar(&a.token, "token", "", "log in with a personal access token instead")
	f.BoolVar(&a.tls, "tls", false, "connect with TLS")
	f.StringVar(&a.ca, "tls-ca", "", "file with the certificates to trust")
	f.BoolVar(&a.insecure, "tls-insecure", false, "connect with TLS, whoever answers")
	f.DurationVar(&a.timeout, "timeout", 30*time.Second, "for one answer")
	f.StringVarP(&a.output, "output", "o", "table", "table or json")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if a.output != "table" && a.output != "json" {
			return usageError{fmt.Errorf("--output %q: want table or json", a.output)}
		}
		return nil
	}
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp))
	root.AddCommand(
		a.streamCommands(), a.topicCommands(), a.partitionCommands(), a.segmentCommands(), a.groupCommands(),
		a.userCommands(), a.permissionCommands(), a.tokenCommands(), a.offsetCommands(),
		a.produceCommand(), a.consumeCommand(), a.contextCommands(), a.localCommands(), a.certificatesCommand(),
	)
	root.AddCommand(a.systemCommands()...)
	return root
}

// action is a command's work on a connection; its result is printed.
type action func(c *client.Client, args []string) (any, error)

// command builds a command that connects, acts and prints.
func (a *app) command(use, short string, args cobra.PositionalArgs, do action) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: usage(args), ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			result, err := do(c, args)
			if err != nil {
				return err
			}
			return a.print(result)
		},
	}
}

// usage marks the errors of an argument check.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{fmt.Errorf("%w\n\n%s", err, strings.TrimSpace(cmd.UsageString()))}
		}
		return nil
	}
}

// family groups commands under a noun.
func family(use, short string, commands ...*cobra.Command) *cobra.Command {
	parent := &cobra.Command{Use: use, Short: short, Args: usage(cobra.NoArgs)}
	parent.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	parent.AddCommand(commands...)
	return parent
}

// connect logs in with flags over environment over context.
func (a *app) connect(ctx context.Context) (*client.Client, error) {
	o, err := a.options()
	if err != nil {
		return nil, err
	}
	if o.Token == "" && o.Password == "" {
		if o.Password, err = a.askPassword(o.Username); err != nil {
			return nil, err
		}
	}
	return dial(ctx, o)
}

func dial(ctx context.Context, o client.Options) (*client.Client, error) {
	c, err := client.Dial(ctx, o)
	if err != nil && !isRefusal(err) {
		return nil, connectError{fmt.Errorf("cannot reach %s: %w", o.Address, err)}
	}
	return c, err
}

// options are where to connect and as whom.
func (a *app) options() (client.Options, error) {
	stored, err := a.activeContext()
	if err != nil {
		return client.Options{}, err
	}
	pick := func(flag, variable, stored, otherwise string) string {
		for _, v := range []string{flag, a.Getenv(variable), stored} {
			if v != "" {
				return v
			}
		}
		return otherwise
	}
	o := client.Options{
		Address:  pick(a.address, "WHIPPET_ADDRESS", stored.Address, "127.0.0.1:8090"),
		Username: pick(a.username, "WHIPPET_USERNAME", stored.Username, "iggy"),
		Password: pick(a.password, "WHIPPET_PASSWORD", stored.Password, ""),
		Token:    pick(a.token, "WHIPPET_TOKEN", stored.Token, ""),
		Timeout:  a.timeout, RetryFor: a.timeout, Name: "whippet-cli", Version: a.Version,
	}
	if a.password != "" && a.token == "" { // a password on the command line beats a stored token
		o.Token = ""
	}
	if ca := pick(a.ca, "WHIPPET_TLS_CA", stored.CA, ""); a.tls || a.insecure || ca != "" || stored.TLS || stored.Insecure {
		o.TLS, err = tlsConfig(ca, a.insecure || stored.Insecure)
	}
	return o, err
}

func tlsConfig(ca string, insecure bool) (*tls.Config, error) {
	c := &tls.Config{InsecureSkipVerify: insecure, MinVersion: tls.VersionTLS12}
	if ca == "" {
		return c, nil
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, usageError{err}
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(pem) {
		return nil, usageError{fmt.Errorf("%s holds no certificate", ca)}
	}
	return c, nil
}

func (a *app) askPassword(user string) (string, error) {
	in, ok := a.In.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return "", usageError{fmt.Errorf("no password for %s: give --password, --token, WHIPPET_PASSWORD or a context", user)}
	}
	fmt.Fprintf(a.Err, "password for %s: ", user)
	b, err := term.ReadPassword(int(in.Fd()))
	fmt.Fprintln(a.Err)
	return string(b), err
}
