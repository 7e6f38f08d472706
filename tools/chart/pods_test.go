package chart

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/whippet-mq/whippet/libs/service"
)

// TestPods looks at everything a rendering says of its pods.
func TestPods(t *testing.T) {
	for name, text := range variants {
		t.Run(name, func(t *testing.T) {
			m := read(t, values(t, text))
			for _, p := range m.participants {
				safe(t, p)
				probed(t, p)
				mounted(t, &m, p)
				if p.labels["app.kubernetes.io/component"] != "nats" {
					configured(t, &m, p)
				}
			}
			selected(t, &m)
		})
	}
}

// safe wants no privileges.
func safe(t *testing.T, p pod) {
	s := p.spec.SecurityContext
	if s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.RunAsUser == nil || *s.RunAsUser == 0 || s.SeccompProfile == nil ||
		s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault || p.spec.AutomountServiceAccountToken == nil || *p.spec.AutomountServiceAccountToken {
		t.Errorf("%s may do more than it should: %+v", p.name, s)
	}
	for _, c := range p.spec.Containers {
		s := c.SecurityContext
		if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem ||
			s.Privileged != nil || s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
			t.Errorf("%s, %s has privileges: %+v", p.name, c.Name, s)
		}
		if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
			t.Errorf("%s has no bounds: %+v", p.name, c.Resources)
		}
	}
}

// probed wants probes that ask what the process answers.
func probed(t *testing.T, p pod) {
	for _, c := range p.spec.Containers {
		ready := "/readyz"
		if c.Name == "nats" {
			ready = "/healthz"
		}
		for what, probe := range map[string]*corev1.Probe{"/healthz": c.LivenessProbe, ready: c.ReadinessProbe} {
			switch {
			case probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != what:
				t.Errorf("%s: the probe of %s is %+v", p.name, what, probe)
			case !slices.ContainsFunc(c.Ports, func(port corev1.ContainerPort) bool { return port.Name == probe.HTTPGet.Port.StrVal }):
				t.Errorf("%s: there is no port %s", p.name, probe.HTTPGet.Port.StrVal)
			}
		}
	}
}

// mounted wants a volume behind each mount, and in secrets that the chart makes the keys that are asked for.
func mounted(t *testing.T, m *manifest, p pod) {
	volumes := map[string]corev1.Volume{}
	for _, v := range p.spec.Volumes {
		volumes[v.Name] = v
		if v.Secret == nil {
			continue
		}
		made, ok := m.secrets[v.Secret.SecretName]
		for _, item := range v.Secret.Items {
			if ok && made.Data[item.Key] == nil && made.StringData[item.Key] == "" {
				t.Errorf("%s: secret %s has no %s", p.name, v.Secret.SecretName, item.Key)
			}
		}
	}
	for _, s := range m.sets {
		for _, claim := range s.Spec.VolumeClaimTemplates {
			volumes[claim.Name] = corev1.Volume{Name: claim.Name}
		}
	}
	for _, mount := range p.spec.Containers[0].VolumeMounts {
		if _, ok := volumes[mount.Name]; !ok {
			t.Errorf("%s: nothing is mounted at %s", p.name, mount.MountPath)
		}
	}
}

// configured has the services' own configuration read the environment of a pod, and compares it with ports and names.
func configured(t *testing.T, m *manifest, p pod) {
	c := load(t, p)
	if c == nil {
		return
	}
	container := p.spec.Containers[0]
	ports := map[string]int32{}
	for _, port := range container.Ports {
		ports[port.Name] = port.ContainerPort
	}
	listens := map[string]string{"ops": c.Ops.Address}
	if p.stateful {
		listens["replica"], listens["service"] = c.Replica.Address, c.Service.Address
	} else {
		listens["tcp"], listens["quic"], listens["websocket"], listens["http"] = c.TCP.Address, c.QUIC.Address, c.WebSocket.Address, c.HTTP.Address
	}
	for name, address := range listens {
		if want := fmt.Sprintf("0.0.0.0:%d", ports[name]); address != want {
			t.Errorf("%s listens at %s for %s, its port is %s", p.name, address, name, want)
		}
	}
	if len(ports) != len(listens) {
		t.Errorf("%s has ports %v and listens at %v", p.name, ports, listens)
	}
	roster, err := c.MetadataRoster()
	if err != nil {
		t.Errorf("%s: %v", p.name, err)
	}
	host := p.name + "." + strings.TrimSuffix(p.name, "-"+strconv.Itoa(p.ordinal))
	if p.stateful && c.Node.Advertise != net.JoinHostPort(host, "9090") {
		t.Errorf("%s says it is %s, want %s:9090", p.name, c.Node.Advertise, host)
	}
	if !strings.HasSuffix(container.Name, "metadata-replica") {
		return
	}
	if c.Node.ReplicaID != p.ordinal || !slices.ContainsFunc(roster, func(peer service.Peer) bool {
		return int(peer.ID) == p.ordinal && peer.Replica == net.JoinHostPort(host, "9090")
	}) {
		t.Errorf("%s has id %d; the roster is %v", p.name, c.Node.ReplicaID, roster)
	}
	if headless := m.services[strings.TrimSuffix(p.name, "-"+strconv.Itoa(p.ordinal))]; headless.Spec.ClusterIP != corev1.ClusterIPNone || !headless.Spec.PublishNotReadyAddresses {
		t.Errorf("%s has no headless service that knows it before it is ready: %+v", p.name, headless.Spec)
	}
}

// load reads the environment of a pod as the process in it would.
func load(t *testing.T, p pod) *service.Config {
	t.Helper()
	secrets := t.TempDir()
	var environ []string
	for _, e := range p.spec.Containers[0].Env {
		value := strings.ReplaceAll(e.Value, "$(POD_NAME)", p.name)
		if e.ValueFrom != nil {
			value = downward(t, p, e.ValueFrom.FieldRef.FieldPath)
		}
		if strings.HasSuffix(e.Name, "_FILE") {
			if !slices.ContainsFunc(p.spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == filepath.Dir(value) }) {
				t.Errorf("%s: nothing is mounted where %s is to be", p.name, value)
			}
			value = filepath.Join(secrets, filepath.Base(value))
			if err := os.WriteFile(value, []byte(strings.Repeat("s", 48)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if strings.HasPrefix(e.Name, "WHIPPET_") || strings.HasPrefix(e.Name, "IGGY_") {
			environ = append(environ, e.Name+"="+value)
		}
	}
	c, warnings, err := service.Load(nil, environ)
	if err != nil || len(warnings) > 0 {
		t.Errorf("%s: %v, %v", p.name, err, warnings)
		return nil
	}
	return c
}

// downward is what a pod learns of itself.
func downward(t *testing.T, p pod, path string) string {
	switch path {
	case "metadata.name":
		return p.name
	case "metadata.labels['apps.kubernetes.io/pod-index']":
		return strconv.Itoa(p.ordinal)
	case "metadata.labels['topology.kubernetes.io/zone']":
		return "zone-1"
	}
	t.Errorf("%s asks for %s", p.name, path)
	return ""
}

// selected wants each service, budget and set to select pods of one component.
func selected(t *testing.T, m *manifest) {
	matches := func(what string, selector map[string]string, want int) {
		components := map[string]bool{}
		for _, p := range m.participants {
			all := len(selector) > 0
			for key, value := range selector {
				all = all && p.labels[key] == value
			}
			if all {
				components[p.labels["app.kubernetes.io/component"]] = true
			}
		}
		if len(components) != want {
			t.Errorf("%s selects %v", what, components)
		}
	}
	byLabel := func(what string, s *metav1.LabelSelector) { matches(what, s.MatchLabels, 1) }
	for name, s := range m.services {
		matches("service "+name, s.Spec.Selector, 1)
		for _, port := range s.Spec.Ports {
			found := false
			for _, p := range m.participants {
				if p.labels["app.kubernetes.io/component"] != s.Spec.Selector["app.kubernetes.io/component"] {
					continue
				}
				found = slices.ContainsFunc(p.spec.Containers[0].Ports, func(c corev1.ContainerPort) bool {
					return c.Name == port.TargetPort.StrVal && c.ContainerPort == port.Port && (c.Protocol == port.Protocol || port.Protocol == "")
				})
			}
			if !found {
				t.Errorf("service %s: no pod has port %s, %d", name, port.TargetPort.StrVal, port.Port)
			}
		}
	}
	for _, b := range m.budgets {
		byLabel("budget "+b.Name, b.Spec.Selector)
		if b.Spec.MaxUnavailable.IntVal != 1 {
			t.Errorf("budget %s lets %v go", b.Name, b.Spec.MaxUnavailable)
		}
	}
	for _, s := range m.sets {
		byLabel("set "+s.Name, s.Spec.Selector)
		if s.Spec.PodManagementPolicy != "Parallel" || m.services[s.Spec.ServiceName].Name == "" {
			t.Errorf("set %s starts %s, under the service %q", s.Name, s.Spec.PodManagementPolicy, s.Spec.ServiceName)
		}
	}
	for _, d := range m.deployments {
		byLabel("deployment "+d.Name, d.Spec.Selector)
	}
}

// TestParts counts what each variant consists of.
func TestParts(t *testing.T) {
	for name, want := range map[string]string{
		"defaults": "4 services, 2 sets, 1 deployments, 3 budgets, 1 secrets, 0 monitors",
		"small":    "4 services, 2 sets, 1 deployments, 0 budgets, 1 secrets, 0 monitors",
		"secured":  "4 services, 2 sets, 1 deployments, 3 budgets, 0 secrets, 0 monitors",
		"watched":  "5 services, 2 sets, 2 deployments, 3 budgets, 2 secrets, 3 monitors",
	} {
		m := read(t, values(t, variants[name]))
		got := fmt.Sprintf("%d services, %d sets, %d deployments, %d budgets, %d secrets, %d monitors", len(m.services), len(m.sets), len(m.deployments), len(m.budgets), len(m.secrets), m.monitors)
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
