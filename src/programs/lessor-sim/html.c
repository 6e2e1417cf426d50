/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor-sim/html.h"
#include <math.h>

enum {
        WIDTH = 760,
        HEIGHT = 340,
        LEFT = 64,
        RIGHT = 150,
        TOP = 12,
        BOTTOM = 44,
        COLOURS = 10,
        LEVELS = 10,
        LANES = 60
};

static const char *const colours[COLOURS] = { "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00",
                                              "#56b4e9", "#8c564b", "#7f7f7f", "#6a3d9a", "#b2a300" };

void html_text(FILE *to, const char *text)
{
        for (; *text != '\0'; text++)
                switch (*text) {
                case '<':
                        (void) fputs("&lt;", to);
                        break;
                case '>':
                        (void) fputs("&gt;", to);
                        break;
                case '&':
                        (void) fputs("&amp;", to);
                        break;
                case '"':
                        (void) fputs("&quot;", to);
                        break;
                default:
                        (void) fputc(*text, to);
                }
}

void html_begin(FILE *to, const char *title)
{
        (void) fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                     "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
                     "'unsafe-inline'\">\n"
                     "<title>",
                     to);
        html_text(to, title);
        (void) fputs("</title>\n<style>\n"
                     "body{font:15px/1.45 sans-serif;max-width:60em;margin:2em auto;padding:0 "
                     "1em;color:#222;background:#fff}\n"
                     "svg{display:block;width:100%;height:auto;margin:0 0 2em}\n"
                     "svg text{font:12px sans-serif;fill:#444}\n"
                     "pre{overflow-x:auto;font-size:12px;background:#f4f4f4;padding:1em}\n"
                     ".g{stroke:#ddd}.a{stroke:#888;fill:none}\n"
                     "</style></head><body>\n<h1>",
                     to);
        html_text(to, title);
        (void) fputs("</h1>\n", to);
}

void html_end(FILE *to)
{
        (void) fputs("</body></html>\n", to);
}

/* ---- axes ---- */

struct axes {
        double x_from, x_to, y_from, y_to;
        bool log_x;
};

static double x_of(const struct axes *a, double x)
{
        double from = a->log_x ? log10(a->x_from) : a->x_from, to = a->log_x ? log10(a->x_to) : a->x_to;
        double at = a->log_x ? log10(x < 1 ? 1 : x) : x;

        return LEFT + (at - from) / (to - from) * (WIDTH - LEFT - RIGHT);
}

static double y_of(const struct axes *a, double y)
{
        return HEIGHT - BOTTOM - (y - a->y_from) / (a->y_to - a->y_from) * (HEIGHT - TOP - BOTTOM);
}

/* 1, 2 or 5 times a power of ten, so that about @n of them are in @span. */
static double nice_step(double span, int n)
{
        double raw = span / n, power = pow(10, floor(log10(raw)));

        return power * (raw / power < 1.5 ? 1 : raw / power < 3.5 ? 2 : raw / power < 7.5 ? 5 : 10);
}

static void svg_begin(FILE *to, const char *title, int height)
{
        (void) fputs("<h2>", to);
        html_text(to, title);
        (void) fprintf(to, "</h2>\n<svg viewBox=\"0 0 %d %d\" role=\"img\">\n", WIDTH, height);
}

static void x_tick(FILE *to, const struct axes *a, double x)
{
        double at = x_of(a, x);

        (void) fprintf(to,
                       "<line class=\"g\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/><text x=\"%.1f\" y=\"%d\" "
                       "text-anchor=\"middle\">%g</text>\n",
                       at, TOP, at, HEIGHT - BOTTOM, at, HEIGHT - BOTTOM + 16, x);
}

static void draw_axes(FILE *to, const struct axes *a, const char *x_title, const char *y_title)
{
        double step = nice_step(a->y_to - a->y_from, 6);

        for (int i = (int) ceil(a->y_from / step - 1e-9); i * step <= a->y_to + step * 1e-6; i++) {
                double at = y_of(a, i * step);
                (void) fprintf(to,
                               "<line class=\"g\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/><text x=\"%d\" "
                               "y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                               LEFT, at, WIDTH - RIGHT, at, LEFT - 6, at + 4, i * step);
        }
        if (a->log_x) {
                for (double x = 1; x <= a->x_to * 1.0001; x *= 10)
                        if (x >= a->x_from)
                                x_tick(to, a, x);
        } else {
                step = nice_step(a->x_to - a->x_from, 8);
                for (int i = (int) ceil(a->x_from / step - 1e-9); i * step <= a->x_to + step * 1e-6; i++)
                        x_tick(to, a, i * step);
        }
        (void) fprintf(to, "<path class=\"a\" d=\"M%d %dV%dH%d\"/>\n<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">",
                       LEFT, TOP, HEIGHT - BOTTOM, WIDTH - RIGHT, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8);
        html_text(to, x_title);
        (void) fprintf(to, "</text>\n<text transform=\"translate(14 %d) rotate(-90)\" text-anchor=\"middle\">",
                       (TOP + HEIGHT - BOTTOM) / 2);
        html_text(to, y_title);
        (void) fputs("</text>\n", to);
}

static struct axes find_axes(const struct chart *c)
{
        struct axes a = { INFINITY, -INFINITY, INFINITY, -INFINITY, c->log_x };

        for (size_t s = 0; s < c->n_series; s++)
                for (size_t i = 0; i < c->series[s].n; i++) {
                        double low = c->series[s].low ? c->series[s].low[i] : c->series[s].y[i];
                        double high = c->series[s].high ? c->series[s].high[i] : c->series[s].y[i];
                        a.x_from = fmin(a.x_from, c->series[s].x[i]);
                        a.x_to = fmax(a.x_to, c->series[s].x[i]);
                        a.y_from = fmin(a.y_from, low);
                        a.y_to = fmax(a.y_to, high);
                }
        if (c->has_y_range) {
                a.y_from = c->y_from;
                a.y_to = c->y_to;
        }
        if (a.log_x)
                a.x_from = 1;
        if (!(a.x_to > a.x_from)) { /* nothing, or one point */
                a.x_from = isfinite(a.x_from) ? a.x_from : 0;
                a.x_to = a.x_from + 1;
        }
        if (!(a.y_to > a.y_from)) {
                a.y_from = isfinite(a.y_from) ? a.y_from : 0;
                a.y_to = a.y_from + 1;
        }
        return a;
}

void html_chart(FILE *to, const struct chart *c)
{
        struct axes a = find_axes(c);

        svg_begin(to, c->title, HEIGHT);
        draw_axes(to, &a, c->x_title, c->y_title);
        for (size_t s = 0; s < c->n_series; s++) {
                const struct series *one = &c->series[s];
                const char *colour = colours[s % COLOURS];
                if (one->low && one->high && one->n > 1) {
                        (void) fprintf(to, "<path fill=\"%s\" fill-opacity=\"0.15\" d=\"M", colour);
                        for (size_t i = 0; i < one->n; i++)
                                (void) fprintf(to, "%.1f %.1f ", x_of(&a, one->x[i]), y_of(&a, one->high[i]));
                        for (size_t i = one->n; i-- > 0;)
                                (void) fprintf(to, "%.1f %.1f ", x_of(&a, one->x[i]), y_of(&a, one->low[i]));
                        (void) fputs("Z\"/>\n", to);
                }
                (void) fprintf(to, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" points=\"", colour);
                for (size_t i = 0; i < one->n; i++)
                        (void) fprintf(to, "%.1f,%.1f ", x_of(&a, one->x[i]), y_of(&a, one->y[i]));
                (void) fprintf(to, "\"/>\n<text x=\"%d\" y=\"%zu\" style=\"fill:%s\">", WIDTH - RIGHT + 10,
                               TOP + 12 + 16 * s, colour);
                html_text(to, one->name);
                (void) fputs("</text>\n", to);
        }
        (void) fputs("</svg>\n", to);
}

/* ---- areas ---- */

void html_heat(FILE *to, const char *title, const char *x_title, const char *y_title, const uint8_t *values,
               size_t n_columns, size_t n_rows, size_t stride)
{
        double wide = (double) (WIDTH - LEFT - 20) / (double) (n_columns == 0 ? 1 : n_columns);
        double high = (double) (HEIGHT - TOP - BOTTOM) / (double) (n_rows == 0 ? 1 : n_rows);

        svg_begin(to, title, HEIGHT);
        for (size_t row = 0; row < n_rows; row++)
                for (size_t from = 0; from < n_columns;) { /* neighbours of one level are one */
                        int level = values[from * stride + row] * LEVELS / 100;
                        size_t end = from + 1;
                        while (end < n_columns && values[end * stride + row] * LEVELS / 100 == level)
                                end++;
                        if (level > 0)
                                (void) fprintf(to,
                                               "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.2f\" height=\"%.2f\" "
                                               "fill=\"#0072b2\" fill-opacity=\"%.1f\"/>\n",
                                               LEFT + (double) from * wide, TOP + (double) row * high,
                                               (double) (end - from) * wide, high, (double) level / LEVELS);
                        from = end;
                }
        (void) fprintf(to, "<path class=\"a\" d=\"M%d %dV%dH%d\"/>\n<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">",
                       LEFT, TOP, HEIGHT - BOTTOM, WIDTH - 20, (LEFT + WIDTH - 20) / 2, HEIGHT - 16);
        html_text(to, x_title);
        (void) fprintf(to, "</text>\n<text transform=\"translate(40 %d) rotate(-90)\" text-anchor=\"middle\">",
                       (TOP + HEIGHT - BOTTOM) / 2);
        html_text(to, y_title);
        (void) fputs("</text>\n</svg>\n", to);
}

void html_gantt(FILE *to, const char *title, const char *x_title, const struct bar *bars, size_t n)
{
        double until[LANES] = { 0 }, from = INFINITY, end = -INFINITY;
        double high = (double) (HEIGHT - TOP - BOTTOM) / LANES;

        for (size_t i = 0; i < n; i++) {
                from = fmin(from, bars[i].wait_s);
                end = fmax(end, bars[i].end_s);
        }
        if (!(end > from))
                return;
        double scale = (WIDTH - LEFT - 20) / (end - from);
        for (size_t lane = 0; lane < LANES; lane++)
                until[lane] = -INFINITY;
        svg_begin(to, title, HEIGHT);
        for (size_t i = 0; i < n; i++) {
                size_t lane = 0, best = 0;
                for (; lane < LANES && until[lane] > bars[i].wait_s; lane++)
                        if (until[lane] < until[best])
                                best = lane;
                if (lane == LANES)
                        lane = best; /* more at once than lanes: over the one that ends first */
                until[lane] = bars[i].end_s;
                double y = TOP + (double) lane * high;
                (void) fprintf(to,
                               "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#d55e00\"/>"
                               "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.2f\" height=\"%.2f\" fill=\"#0072b2\" "
                               "fill-opacity=\"0.7\"><title>",
                               LEFT + (bars[i].wait_s - from) * scale, y + high / 2,
                               LEFT + (bars[i].begin_s - from) * scale, y + high / 2,
                               LEFT + (bars[i].begin_s - from) * scale, y,
                               fmax(0.5, (bars[i].end_s - bars[i].begin_s) * scale), high * 0.8);
                html_text(to, bars[i].name);
                (void) fputs("</title></rect>\n", to);
        }
        (void) fprintf(to, "<path class=\"a\" d=\"M%d %dV%dH%d\"/>\n<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">",
                       LEFT, TOP, HEIGHT - BOTTOM, WIDTH - 20, (LEFT + WIDTH - 20) / 2, HEIGHT - 16);
        html_text(to, x_title);
        (void) fputs("</text>\n</svg>\n", to);
}
