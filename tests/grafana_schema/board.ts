// The types that a dashboard of ours must have. JSON holds an enum's text, so enums are read as their texts.
import type * as dashboard from '@grafana/schema/dist/types/raw/dashboard/x/types.gen';
import type * as logs from '@grafana/schema/dist/types/raw/composable/logs/panelcfg/x/types.gen';
import type * as stat from '@grafana/schema/dist/types/raw/composable/stat/panelcfg/x/types.gen';
import type * as timeline from '@grafana/schema/dist/types/raw/composable/statetimeline/panelcfg/x/types.gen';
import type * as table from '@grafana/schema/dist/types/raw/composable/table/panelcfg/x/types.gen';
import type * as timeseries from '@grafana/schema/dist/types/raw/composable/timeseries/panelcfg/x/types.gen';

type Plain<T> = unknown extends T
  ? T
  : T extends string
    ? `${T}`
    : T extends (infer Item)[]
      ? Plain<Item>[]
      : T extends object
        ? { [Key in keyof T]: Plain<T[Key]> }
        : T;

// Fields of the data sources' own, which the schema of a dashboard does not know.
type Asked = { refId: string; datasource: dashboard.DataSourceRef; expr: string };
type OfPrometheus = Asked & { legendFormat: string; instant: boolean; range: boolean; format: 'time_series' | 'table' };
type OfLoki = Asked & { queryType: 'range' };
type Mark = Plain<dashboard.AnnotationQuery> & {
  expr: string;
  titleFormat: string;
  textFormat: string;
  step?: string;
  useValueForTime?: boolean;
};

type Of<Kind extends string, Options, Custom = Record<string, never>> = Omit<
  Plain<dashboard.Panel>,
  'type' | 'options' | 'targets' | 'fieldConfig'
> & {
  type: Kind;
  options: Partial<Plain<Options>>;
  targets?: (OfPrometheus | OfLoki)[];
  fieldConfig?: {
    defaults: Omit<Plain<dashboard.FieldConfig>, 'custom'> & { custom?: Partial<Plain<Custom>> };
    overrides: never[];
  };
};
type Panel =
  | Of<'timeseries', timeseries.Options, timeseries.FieldConfig>
  | Of<'state-timeline', timeline.Options, timeline.FieldConfig>
  | Of<'stat', stat.Options>
  | Of<'table', table.Options>
  | Of<'logs', logs.Options>
  | Of<'alertlist', Record<string, unknown>>; // npm has no types of its options

export type Board = Omit<Plain<dashboard.Dashboard>, 'panels' | 'annotations'> & {
  panels: Panel[];
  annotations: { list: Mark[] };
};
