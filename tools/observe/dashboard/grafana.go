package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Places of panels: Grafana's grid has 24 columns.
const (
	columns                   = 24
	graphWidth, graphHeight   = 8, 8
	figureWidth, figureHeight = 4, 4
)

type object = map[string]any

// Grafana is the dashboard as Grafana provisions it.
func (d *Dashboard) Grafana() ([]byte, error) {
	var panels []object
	place := grid{}
	for _, row := range d.Rows {
		place.row()
		panels = append(panels, object{
			"id": len(panels) + 1, "type": "row", "title": row.Title, "collapsed": false, "panels": []object{}, "gridPos": place.put(columns, 1),
		})
		for i := range row.Panels {
			p := row.Panels[i].grafana(&place)
			p["id"] = len(panels) + 1
			panels = append(panels, p)
		}
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(object{
		"uid": "whippet-" + d.File, "title": d.Title, "description": d.About, "tags": []string{"whippet"}, "editable": false,
		"schemaVersion": 39, "version": 1, "refresh": "10s", "timezone": "", "graphTooltip": 1,
		"time":       object{"from": "now-30m", "to": "now"},
		"templating": object{"list": []object{}}, "annotations": object{"list": []object{}},
		"links":  []object{{"type": "dashboards", "tags": []string{"whippet"}, "title": "Whippet", "asDropdown": true, "includeVars": false, "keepTime": true}},
		"panels": panels,
	})
	if err != nil {
		return nil, fmt.Errorf("dashboard %s: %w", d.File, err)
	}
	return b.Bytes(), nil
}

func (p *Panel) grafana(place *grid) object {
	source := object{"type": "prometheus", "uid": Source}
	kind, width, height := "timeseries", graphWidth, graphHeight
	options := object{"legend": object{"displayMode": "list", "placement": "bottom"}, "tooltip": object{"mode": "multi", "sort": "desc"}}
	if p.Figures {
		kind, width, height = "stat", figureWidth, figureHeight
		options = object{"reduceOptions": object{"calcs": []string{"lastNotNull"}}, "colorMode": "none", "graphMode": "area", "textMode": "value_and_name"}
	}
	targets := make([]object, len(p.Queries))
	for i, q := range p.Queries {
		targets[i] = object{"refId": string(rune('A' + i)), "datasource": source, "expr": q.Expr, "legendFormat": q.Legend}
	}
	return object{
		"type": kind, "title": p.Title, "description": p.About, "datasource": source, "targets": targets, "options": options,
		"gridPos":     place.put(width, height),
		"fieldConfig": object{"defaults": object{"unit": string(p.Unit), "min": 0}, "overrides": []object{}},
	}
}

// grid fills rows from left to right.
type grid struct{ x, y, height int }

func (g *grid) row() { g.x, g.y, g.height = 0, g.y+g.height, 0 }

func (g *grid) put(width, height int) object {
	if g.x+width > columns {
		g.row()
	}
	at := object{"x": g.x, "y": g.y, "w": width, "h": height}
	g.x, g.height = g.x+width, max(g.height, height)
	return at
}
