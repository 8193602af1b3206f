"""From stored results to one page: tables, verdicts, figures.

judge     a result's table and its rules' verdicts
plots     figures by matplotlib, as PNG
page      the page by jinja2, with the figures inside it
"""
