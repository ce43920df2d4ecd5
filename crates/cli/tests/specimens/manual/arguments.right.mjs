export const execute = ({ script, args, options }) => ({ output: { script, args, options } });
