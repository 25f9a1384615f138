export { surveyCanvas } from './canvasSurvey';
export { launchChromium, openWindow } from './chromium';
export { CredentialForm } from './credentialForm';
export { docsPicture } from './docsPicture';
export { drawnWidth } from './drawnWidth';
export { Editor } from './editor';
export { NodePanel } from './nodePanel';
